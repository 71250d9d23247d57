"""What global tokens of a second stream stand for: sentences, paragraphs, questions."""
