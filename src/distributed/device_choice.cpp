#include "distributed/device_choice.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "distributed/agreement.h"

namespace stretto::distributed {
namespace {

/// Two ranks of one machine that would take the same GPU.
struct SharedDevice {
  int first = 0, second = 0;
  std::string id;
};

std::optional<SharedDevice> find_shared(std::span<const VisibleDevices> ranks,
                                        const std::vector<int>& members,
                                        const std::vector<int>& indices) {
  std::map<std::string, int> owner;
  for (const int rank : members) {
    const auto i = static_cast<size_t>(rank);
    const std::string& id = ranks[i].ids[static_cast<size_t>(indices[i])];
    const auto [place, is_new] = owner.try_emplace(id, rank);
    if (!is_new) return SharedDevice{place->second, rank, id};
  }
  return {};
}

void require_devices(std::span<const VisibleDevices> ranks) {
  std::vector<int> blind;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].ids.empty()) blind.push_back(static_cast<int>(rank));
  }
  if (blind.empty()) return;
  throw Error(ExitCode::kUsage,
              "host " + ranks[static_cast<size_t>(blind.front())].host +
                  (blind.size() == 1 ? ": rank " : ": ranks ") + rank_list(blind) +
                  (blind.size() == 1 ? " sees" : " see") + " no GPU",
              "give each process one (`srun --gpus-per-task=1`, CUDA_VISIBLE_DEVICES), or start "
              "fewer processes");
}

// Chooses for the ranks of one machine.
void choose_on_machine(std::span<const VisibleDevices> ranks, const std::vector<int>& members,
                       std::vector<int>& indices) {
  for (const int rank : members) {
    const auto i = static_cast<size_t>(rank);
    indices[i] = ranks[i].local_rank % static_cast<int>(ranks[i].ids.size());
  }
  const auto shared = find_shared(ranks, members, indices);
  if (!shared) return;
  for (const int rank : members) indices[static_cast<size_t>(rank)] = 0;
  if (!find_shared(ranks, members, indices)) return;
  std::set<std::string> all;
  for (const int rank : members) {
    const auto& ids = ranks[static_cast<size_t>(rank)].ids;
    all.insert(ids.begin(), ids.end());
  }
  throw Error(ExitCode::kUsage,
              "host " + ranks[static_cast<size_t>(shared->first)].host + ": ranks " +
                  std::to_string(shared->first) + " and " + std::to_string(shared->second) +
                  " would share the GPU " + shared->id + "; its " + std::to_string(members.size()) +
                  " processes see " + std::to_string(all.size()) +
                  (all.size() == 1 ? " GPU" : " GPUs"),
              "start at most one process for each GPU, and let each see its own or all of them");
}

}  // namespace

std::vector<int> choose_devices(std::span<const VisibleDevices> ranks) {
  require_devices(ranks);
  std::map<std::string, std::vector<int>> machines;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    machines[ranks[rank].machine].push_back(static_cast<int>(rank));
  }
  std::vector<int> indices(ranks.size());
  for (const auto& [machine, members] : machines) choose_on_machine(ranks, members, indices);
  return indices;
}

int choose_device(const ProcessGroup& group, const VisibleDevices& mine) {
  const nlohmann::json words{{"machine", mine.machine},
                             {"host", mine.host},
                             {"local_rank", mine.local_rank},
                             {"ids", mine.ids}};
  std::vector<VisibleDevices> all;
  for (const auto& text : group.all_gather_bytes(words.dump())) {
    const auto json = parse_json(text, "GPUs of a rank", 65536);
    all.push_back({json.at("machine").get<std::string>(), json.at("host").get<std::string>(),
                   json.at("local_rank").get<int>(),
                   json.at("ids").get<std::vector<std::string>>()});
  }
  return choose_devices(all)[static_cast<size_t>(group.rank())];
}

}  // namespace stretto::distributed
