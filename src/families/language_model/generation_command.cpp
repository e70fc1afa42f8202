#include "families/language_model/generation_command.h"

#include "families/language_model/generation_requests.h"

namespace stretto::experiment {

FamilyCommand generation_command() {
  using O = tasks::GenerationArguments;
  return {
      .options =
          {
              command_option(&O::prompts,
                             {.name = "--prompt",
                              .type = "TEXT",
                              .help = "text to continue, in the place of lines; again for more; an "
                                      "empty one begins a text"}),
              {.name = "--samples",
               .type = "N",
               .help = "decode.nbest: continuations of each prompt",
               .value = int64_t{0},
               .least = 1,
               .most = 1000,
               .key = "decode.nbest"},
              command_option(&O::stream, {.name = "--stream",
                                          .help = "print text as it is written, one line after the "
                                                  "other; for one sample"}),
              command_option(&O::echo, {.name = "--echo",
                                        .help = "print each prompt in front of what continues it"}),
          },
      .batch_keys = {"decode.max_tokens"}};
}

}  // namespace stretto::experiment
