#pragma once
#include <string>

#include "forecast/forecast.h"

namespace krigtune::forecast {

/// One optimizer step of the configuration as it is predicted, in Chrome's trace event format, which Perfetto and
/// chrome://tracing show. On one pipeline stage: a rank's streams, operation by operation as krigtune-bench would run
/// them, with its memory. On several: each stage's forwards, backwards and sends, and what it does behind them; a gap
/// is a bubble.
/// Throws UserError: no time is predicted for the session, or the configuration is not modelled.
std::string predicted_trace(const session::Session& session, const Forecaster& forecaster,
                            const space::Configuration& configuration);

}  // namespace krigtune::forecast
