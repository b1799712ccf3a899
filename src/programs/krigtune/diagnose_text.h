#pragma once
#include <ostream>

#include "core/json.h"
#include "diagnose/diagnosis.h"
#include "diagnose/measured_parts.h"
#include "session/session.h"

namespace krigtune::cli {

/// Prints the diagnosis of a configuration. `subject`: "the baseline of job.json".
void print_diagnosis(std::ostream& out, const session::Session& session, const diagnose::Diagnosis& diagnosis,
                     const std::string& subject);
/// Returns the diagnosis as fields of its document.
Json to_json(const session::Session& session, const diagnose::Diagnosis& diagnosis);

/// Prints the parts of a measurement of which no model is known.
void print_parts(std::ostream& out, const diagnose::MeasuredParts& measured, const std::string& subject);
Json to_json(const diagnose::MeasuredParts& measured);

}  // namespace krigtune::cli
