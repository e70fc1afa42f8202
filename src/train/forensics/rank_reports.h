#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "distributed/process_group.h"
#include "optim/arena.h"
#include "train/forensics/forensics_report.h"

/// The reports of all processes on one update that was not finite. Each examines its own
/// micro-batches; the run folder may be that of one host alone, so rank 0 writes what all found.
namespace stretto::train {

/// What one rank brings.
struct RankFindings {
  std::optional<NonfiniteReport> found;  ///< nullopt: the examination failed
  UpdateRecord record;
  std::string overflowed_sum;  ///< a sum over processes that is not finite on this rank; "" = none
  AdviceContext run = {};      ///< for the advice
  bool loss_finite = true;     ///< of the whole update
  bool half_sums = false;      ///< dist.compress = "fp16"
  std::vector<parallel::LaneState> carry = {};  ///< of all lanes; see write_reports()
};

/// Calls `examination`. Memory is scarce when numbers explode, and the other ranks wait with their
/// findings: what it throws becomes a warning with the reason, and nullopt. Only Error(kPeerLost)
/// goes on, since all ranks have that one.
std::optional<NonfiniteReport> examine_or_warn(const std::function<NonfiniteReport()>& examination);

/// Rank 0 writes a report of each rank that found something, with its own weights and the state of
/// lanes beside them, which are those of all ranks. When no rank does, and all could look, rank 0
/// reports that: the sum over processes is to blame (`overflowed_sum`), or something that did not
/// come again. What is found and written is logged; a write that fails is a warning.
///
/// Collective: each rank of `group` calls it.
/// @return path of the lowest rank's report, the same on all ranks; "" when none was written
std::string gather_reports(const distributed::ProcessGroup& group,
                           const std::filesystem::path& run_directory, RankFindings mine,
                           const optim::Arena& arena);

}  // namespace stretto::train
