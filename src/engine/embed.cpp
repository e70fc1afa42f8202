#include "tasks/text_encoder/embed.h"

#include "base/error.h"
#include "distributed/launch.h"
#include "engine/commands.h"
#include "engine/session.h"

namespace stretto::engine {

int run_embed(const EmbedRequest& request) {
  if (distributed::detect_launch().kind != distributed::Launch::Kind::kSingle) {
    throw Error(ExitCode::kUsage, "stretto embed is one process, and was started as several",
                "start it once for each part of the text");
  }
  const at::Device device = prepare_process(request.experiment.options);
  tell_of_fallbacks(device);
  return tasks::embed_lines(request, {.group = {}, .device = device});
}

}  // namespace stretto::engine
