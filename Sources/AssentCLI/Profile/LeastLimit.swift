import Foundation

/// What the limits in time of a client's calls are raised to, and of what a server waits for: silent connections, the
/// database, and the last steps of a stop.
enum LeastLimit {
    /// How long each limit in time of a call is at least; `nil` when the calls' own hold.
    ///
    /// Tests start the program on machines that are busy or stand still, and say so in its environment. A program that
    /// was built for release does not look there.
    static func ofCalls(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> Duration? {
        #if DEBUG
        guard let seconds = environment["ASSENT_LEAST_SECONDS"].flatMap({ Int64($0) }), (0...86_400).contains(seconds)
        else { return nil }
        return Duration.seconds(seconds)
        #else
        return nil
        #endif
    }

    /// How many seconds a server waits for silent connections, its services, the database and the last steps of a stop;
    /// `nil` when the usual times hold. Those are shorter than an hour, and less than that is not taken: none of them
    /// becomes shorter.
    static func ofServing(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> Int? {
        guard let seconds = ofCalls(environment)?.components.seconds, seconds >= 3600 else { return nil }
        return Int(seconds)
    }
}
