"""What the documentation site is made of besides its pages: generated parts, checks of language and of shell blocks, and their outputs."""
