#pragma once

#include <string>
#include <vector>

#include "plan/scaling.h"

namespace stretto::plan {

/// A figure that others measured, beside what the model says for the same case.
struct PublishedCase {
  std::string what;  ///< "fairseq, 128 GPUs, no overlap: speed-up"
  double published = 0;
  double predicted = 0;
  std::string free_input;  ///< what was assumed or fitted, and on what
  Setup setup;

  double error() const { return predicted / published - 1; }
};

/// The published scaling figures that the model is checked against.
///
/// Ott et al. 2018 (arXiv:1806.00187): one update of 16 micro-batches on each of 8 GPUs against one
/// micro-batch on each of 128, times the 4.6 that the paper reached with 8. Goyal et al. 2017
/// (arXiv:1706.02677): 256 GPUs against 8. Determined (BERT-base on SQuAD): 8 GPUs of one host, and
/// 16 of two with two micro-batches an update, against one.
std::vector<PublishedCase> published_cases();

/// The same as rows of a Markdown table, with its head; docs/scaling.md holds a copy.
std::string published_table();

}  // namespace stretto::plan
