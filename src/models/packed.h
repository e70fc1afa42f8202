#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// One side of a batch as tensors on `device`; with `sample_ids`, the keys of dropout masks too.
nn::PackedRows pack(const data::PackedTokens& tokens, const std::vector<int64_t>* sample_ids,
                    c10::Device device);

/// A column of values instead of ids: `values` are fp32 or uint8 [N, width].
nn::PackedRows pack(const data::Ragged<float>& rows, const std::vector<int64_t>* sample_ids,
                    c10::Device device);
nn::PackedRows pack(const data::Ragged<uint8_t>& rows, const std::vector<int64_t>* sample_ids,
                    c10::Device device);

/// The rows behind a convolution in time over `rows` with this stride (kernels::TimeWindow): row t
/// of a sequence comes from its row t * stride, and has that row's key, so that masks of dropout do
/// not depend on the cut of a batch. Places are counted anew.
/// @param values  [M, C], what the convolution gave. Throws c10::Error on a CPU for another M
nn::PackedRows behind_stride(const nn::PackedRows& rows, int64_t stride, const at::Tensor& values);

/// The same sequences twice, one copy behind the other, for two passes with other dropout. Masks of
/// the first copy are those of pack(); row keys of the second are mix64(row key of the first, 1),
/// so that the pass is one more coordinate of a mask.
nn::PackedRows pack_twice(const data::PackedTokens& tokens, const std::vector<int64_t>& sample_ids,
                          c10::Device device);

/// Drops whole words in training: with probability `p` the vector of a token is zero, and the other
/// ones stay as they are. Each occurrence is decided for itself by element 0 of a dropout mask of
/// its row (kernels::Dropout), that of beginning- and end-of-sentence too.
nn::PackedRows drop_words(nn::PackedRows rows, const nn::DropoutSource& source, double p,
                          uint64_t site);

/// A batch of texts, with the segment of each token. @param segments  of equal lengths; null = all
/// 0
nn::PackedRows pack_text(const data::PackedTokens& tokens, const data::PackedTokens* segments,
                         const std::vector<int64_t>* sample_ids, c10::Device device);

/// Where each sequence begins, int64 [B].
at::Tensor first_places(const kernels::Offsets& offsets);
/// The first row of each sequence; rows [N, D] -> [B, D]. No sequence is empty.
at::Tensor first_rows(const at::Tensor& rows, const kernels::Offsets& offsets);
/// Where each sequence ends: its last row, int64 [B]. No sequence is empty.
at::Tensor last_places(const kernels::Offsets& offsets);
/// The last row of each sequence; rows [N, D] -> [B, D]. No sequence is empty.
at::Tensor last_rows(const at::Tensor& rows, const kernels::Offsets& offsets);
/// The mean row of each sequence, [N, D] -> [B, D]; zero where it has no rows.
at::Tensor mean_rows(const at::Tensor& rows, const kernels::Offsets& offsets);
/// The largest number of each column among the rows of a sequence, [N, D] -> [B, D]. No sequence is
/// empty.
at::Tensor max_rows(const at::Tensor& rows, const kernels::Offsets& offsets);

/// The decoder's input for targets that end with end-of-sentence: each sequence shifted right by
/// one, with beginning-of-sentence in front and the end left out. Lengths stay as they are.
/// @param bos  of the target's tokenizer. Throws c10::Error where it has none
data::PackedTokens shift_right(const data::PackedTokens& targets, int64_t bos);

}  // namespace stretto::models
