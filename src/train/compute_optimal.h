#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stretto::train {

/// Validations that the curve has to have before anything is said of it.
inline constexpr int64_t kFewestValidations = 8;

/// Why a run with train.stop = "compute_optimal" has ended; nothing: it goes on.
///
/// The loss is L(S) = floor + B S^-b in updates S, fitted to the validations from an eighth of the
/// run on. The floor is what size leaves, about (N_c / N)^a (Kaplan et al. 2020, arXiv:2001.08361,
/// sections 3 and 6). So many times more seconds would lower the loss by b B S^-b with this model,
/// and by a times the floor with one that is larger by as much: from where the first is less, the
/// next second is better spent on a larger model. Said at this validation and at the one before, so
/// that one lucky score ends no run.
///
/// @param quality        of TrainState: step -> the negative loss
/// @param every          looks at validations after multiples of so many updates alone: those where
///                       a process left are not of every run
/// @param size_exponent  a
std::optional<std::string> compute_optimal_reason(const std::map<int64_t, double>& quality,
                                                  int64_t every, double size_exponent);

}  // namespace stretto::train
