#pragma once

#include <cstdint>

#include "models/encoder.h"

namespace stretto::models {

/// What two encoders made of two sources, as one memory: the rows of a sequence are those of the
/// first source, then those of the second, and attention is one softmax over all of them. This is
/// the flat combination of Libovický & Helcl 2017 (arXiv:1704.06567, section 3.1).
///
/// Values are joined where an encoder has some of its own; the other one's are its keys. States are
/// the first encoder's.
///
/// @param first, second  of the same B sequences in the same order, N1 and N2 rows of one width D
/// @param longest        no sequence has more rows of both together
/// @return N1 + N2 rows, on the device of the keys; gradients flow to both
Encoded join_memory(const Encoded& first, const Encoded& second, int64_t longest);

}  // namespace stretto::models
