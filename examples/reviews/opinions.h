#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stretto::reviews {

/// A short review.
struct Review {
  std::string text;
  std::string label;    ///< "good" or "bad"; "mixed", if it says both
  double stars = 0;     ///< 1 to 5, the mean of its opinions
  std::string about;    ///< one of the things that it speaks of
  std::string verdict;  ///< what it says of that: "good" or "bad"
};

struct CorpusSizes {
  size_t train = 6000, valid = 500, test = 1000;
};

struct Corpus {
  std::vector<Review> train, valid, test;
};

/// The reviews of a seed: a function of seed and sizes alone.
///
/// A review has one to three opinions, each on another thing. `not` turns an opinion round, so that
/// words alone do not tell the label. No text occurs twice.
Corpus generate(uint64_t seed, const CorpusSizes& sizes = {});

/// Reviews as a file of columns between tabs, with a header: text, label, stars, about, verdict.
std::string tsv(const std::vector<Review>& reviews);

}  // namespace stretto::reviews
