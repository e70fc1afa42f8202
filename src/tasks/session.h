#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/schema.h"
#include "data/corpus.h"
#include "dist/agreement.h"
#include "dist/make_group.h"
#include "dist/process_group.h"
#include "experiment/load_experiment.h"
#include "tasks/translation.h"
#include "train/run_folder.h"

namespace stretto::tasks {

/// Threads that a process of this experiment works with: `run.threads`, else one for each core that
/// it may use. The result of no computation depends on it.
int64_t num_threads(const experiment::Experiment& experiment);

/// Where this process of an experiment computes.
dist::DeviceKind device_kind(const experiment::Experiment& experiment);

/// The processes that this one was started with by mpirun, srun or torchrun; usually one.
/// Collective. Errors are those of dist::make_process_group.
dist::ProcessGroup join_processes(const experiment::Experiment& experiment);

/// Compares what shapes the common work before there is any: libtorch and every key of the
/// configuration but those that a machine may have its own way (`may_differ_by_rank`). The
/// program's version was compared when the processes joined. Collective. Throws Error(kUsage) on
/// every rank, naming the keys, their values and the ranks.
void require_same_start(const experiment::Experiment& experiment, const dist::ProcessGroup& group);

/// Whether processes of one run may have different values of a key: paths, since contents are
/// compared instead, what one process does for itself, and what rank 0 does alone.
bool may_differ_by_rank(const config::Key& key);

/// A corpus as `dist::require_agreement` compares it: contents, tokenizers and filters as one hash,
/// and the number of pairs; "none" for null.
dist::Fact corpus_fact(const std::string& name, const data::Corpus* corpus);

/// The GPU on which a process of this group trains: that of the group's collectives, and of one
/// process the first that it sees.
at::Device gpu_of(const dist::ProcessGroup& group);

/// Threads and device of this process as an experiment asks for them. Of several processes on one
/// machine each gets its share of the cores that they share, and the GPU that it has joined the
/// group with. Products in half types are added up in fp32 from here on. Throws Error(kUsage) when
/// `run.device = "cuda"` and there is no such device.
at::Device prepare_process(const experiment::Experiment& experiment,
                           const dist::ProcessGroup& group = {});

/// Models of a run for reading: tokenizers from the run folder and one network for each checkpoint,
/// which may be another run's (tasks/described_by.h).
struct LoadedRun {
  text::TokenizerPair tokenizers;
  std::vector<std::shared_ptr<models::Seq2SeqModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};

/// @param checkpoints  names, steps or paths with commas (train/choose_checkpoint.h); empty = best,
///                     else last
/// Writes nothing. Throws Error(kUsage) when the run has none, Error(kBadData) when one that was
/// named is damaged, none is whole, or one does not fit its model or the run's tokenizer.
LoadedRun load_run(const experiment::Experiment& experiment, const train::RunFolder& folder,
                   const std::string& checkpoints, const dist::ProcessGroup& group = {});

}  // namespace stretto::tasks
