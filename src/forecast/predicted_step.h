#pragma once
#include <string>

#include "forecast/forecast.h"

namespace krigtune::forecast {

/// Returns the prediction of one optimizer step of the configuration in Chrome's trace event format, for Perfetto and
/// chrome://tracing. With one pipeline stage it shows a rank's streams, operation by operation as krigtune-bench would
/// run them, and its memory. With several, it shows each stage's forwards, backwards and sends, and its work after
/// them; a gap is a bubble. Throws UserError if no time is predicted for the session, or if the configuration is not
/// modelled.
std::string predicted_trace(const session::Session& session, const Forecaster& forecaster,
                            const space::Configuration& configuration);

}  // namespace krigtune::forecast
