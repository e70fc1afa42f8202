#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/process_group.h"

namespace stretto::distributed {

/// The GPUs that one rank sees.
struct VisibleDevices {
  std::string machine;           ///< the same for ranks of one machine, in containers too
  std::string host;              ///< its name, for messages
  int local_rank = 0;            ///< among the ranks of its machine, as the launcher counts them
  std::vector<std::string> ids;  ///< in the order of their indices; one for each physical GPU
};

/// Which of the GPUs that it sees each rank takes: an index into its own list, no GPU twice.
///
/// Where all ranks of a machine see the same GPUs, local rank r takes number r. Where each sees
/// only its own (`srun --gpus-per-task=1`, CUDA_VISIBLE_DEVICES set for each rank), its local rank
/// may be beyond the end of its list, and is counted round it; where lists overlap so that two
/// ranks would then share a GPU, each takes the first that it sees.
///
/// @param ranks  of all ranks, in order
/// Throws Error(kUsage) that names host and ranks when one sees no GPU, or two would share one.
std::vector<int> choose_devices(std::span<const VisibleDevices> ranks);

/// choose_devices() for this rank of a group that can gather bytes. Collective.
int choose_device(const ProcessGroup& group, const VisibleDevices& mine);

}  // namespace stretto::distributed
