import Foundation

/// Whether tests may take long: with `ASSENT_SOAK=1`, as `make soak` sets it, some race thousands of requests and wait
/// for minutes.
package enum Soak {
    package static let isOn = ProcessInfo.processInfo.environment["ASSENT_SOAK"] == "1"
}
