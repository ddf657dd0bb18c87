"""Which units are drawn: designs give sizes, draws turn sizes into chances, samples hold what came back."""
