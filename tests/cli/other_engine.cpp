#include "engine/engine_api.h"

// An engine of another build: of its table only the first number may be looked at.
extern "C" const stretto::engine::EngineApi stretto_engine{.build_id = 1};
