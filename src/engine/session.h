#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "config/schema.h"
#include "distributed/agreement.h"
#include "distributed/make_group.h"
#include "distributed/process_group.h"
#include "experiment/load_experiment.h"
#include "optim/precision.h"

namespace stretto::engine {

/// Where this process of an experiment computes.
distributed::DeviceKind device_kind(const experiment::Experiment& experiment);

/// The processes that this one was started with by mpirun, srun or torchrun; usually one.
/// Collective. Errors are those of distributed::make_process_group.
distributed::ProcessGroup join_processes(const experiment::Experiment& experiment);

/// Compares what shapes the common work before there is any: libtorch and every key of the
/// configuration but those that a machine may have its own way (`may_differ_by_rank`). The
/// program's version was compared when the processes joined. Collective. Throws Error(kUsage) on
/// every rank, naming the keys, their values and the ranks.
void require_same_start(const experiment::Experiment& experiment,
                        const distributed::ProcessGroup& group);

/// Whether processes of one run may have different values of a key: paths, since contents are
/// compared instead, and keys that say so (config::Meta::per_process).
bool may_differ_by_rank(const config::Key& key);

/// The GPU on which a process of this group trains: that of the group's collectives; for a single
/// process the first that it sees.
at::Device gpu_of(const distributed::ProcessGroup& group);

/// Threads and device of this process as an experiment asks for them. Each of several processes on
/// one machine gets its share of the cores that they share, and the GPU that it has joined the
/// group with. Products in half types are added up in fp32 from here on. Throws Error(kUsage) when
/// `run.device = "cuda"` and there is no such device.
at::Device prepare_process(const experiment::Experiment& experiment,
                           const distributed::ProcessGroup& group = {});

/// The arithmetic that `option`, the value of `key`, means to all processes of a group. Collective:
/// throws Error(kUsage) on every rank where `auto` means different things to them, whose processors
/// or GPUs differ.
optim::Precision agreed_precision(const std::string& option, const std::string& key,
                                  at::Device device, const distributed::ProcessGroup& group);

/// The arithmetic of validation and of commands that use a model, by `eval.precision`. Says in the
/// log, on rank 0, what is not plain fp32. Collective, as agreed_precision().
optim::Precision scoring_precision(const experiment::Experiment& experiment, at::Device device,
                                   const distributed::ProcessGroup& group = {});

/// Says in the log, on rank 0 and once a command, which operators have no kernel on `device`. A CPU
/// has all of them: nothing is said.
void tell_of_fallbacks(at::Device device, const distributed::ProcessGroup& group = {});

/// That line; empty where there is no such operator.
std::string text_of_fallbacks(const std::vector<std::string>& operators);

}  // namespace stretto::engine
