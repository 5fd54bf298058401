"""Sources to code images. Runs in each interpreter that an image is made for, on its standard library alone."""
