"""Whether targets answered alike: answers, final contents, what was written, histories and guarantees."""
