"""The evidence that is published: what is run, how a bundle is made of it, and what pages state of bundles."""
