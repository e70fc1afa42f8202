#include "engine_pch.h"
