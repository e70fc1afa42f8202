#include "families/text/engine/encoder_of_run.h"

#include "base/error.h"
#include "families/text/engine/run_model.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/provenance.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {

EncoderOfRun load_encoder(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                          const std::string& checkpoint, at::Device device) {
  EncoderOfRun run;
  run.tokenizer = load_tokenizer(experiment, assets_of(folder));
  const auto opened = runs::open_checkpoint(folder.directory(), checkpoint);
  const auto described = checkpoint_experiment(opened, folder, experiment);
  runs::require_same_tokenizer(opened, runs::tokenizer_hashes(run.tokenizer.assets),
                               folder.directory() / "tokenizer");
  auto setup = text_model_setup(described, run.tokenizer.tokenizer->size(), {}, device);
  setup.pad = run.tokenizer.tokenizer->specials().pad;
  setup.draws_weights = false;
  // The pooler belongs to what is left out; a causal stack has none.
  setup.model.pooling = "cls";
  run.model = models::make_text_model(setup);
  runs::load_weights(opened, *run.model, /*left_out=*/"head.*",
                     runs::packed_as(experiment.run.packed_weights));
  run.model->eval();
  return run;
}

}  // namespace stretto::tasks
