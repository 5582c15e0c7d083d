"""How each figure is taken; which are taken from whom is in catalogue.py."""
