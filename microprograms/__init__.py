"""Row programs of in-DRAM bit-serial computing: what they are, libraries, execution, proofs."""
