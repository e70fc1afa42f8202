#pragma once

#include "families/masked_lm/masked_lm_options.h"
#include "tests/base/temp_dir.h"
#include "tests/data/documents/animal_lines.h"

namespace stretto::testing {

/// A masked language model of one layer, 16 wide, on lines about animals that `folder` gets: so
/// many lines of training text, and so many of validation text.
inline void make_small(experiment::MaskedLmOptions& own, const TempDir& folder, int train_lines,
                       int valid_lines) {
  own.data.train = {folder.write("train.txt", animal_lines(train_lines, 1))};
  own.data.valid = {folder.write("valid.txt", animal_lines(valid_lines, 2))};
  own.data.documents = "line";
  own.data.packing = "document";
  own.data.max_text_tokens = 16;
  own.data.max_tokens = 160;
  own.data.cache_dir = (folder / "cache").string();
  own.tokenizer.vocab_size = 60;
  own.model.preset = "none";
  own.model.num_layers = 1;
  own.model.d_model = 16;
  own.model.num_heads = 2;
  own.model.ffn_dim = 32;
  own.model.max_positions = 16;
  own.model.dropout = own.model.attention_dropout = 0;
  own.eval.max_tokens = 100;
}

}  // namespace stretto::testing
