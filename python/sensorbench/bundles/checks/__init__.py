"""Checks of results by what they say themselves: each is a function that yields what is wrong."""
