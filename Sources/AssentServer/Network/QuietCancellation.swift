import Logging

/// Logs at the level debug that a listener was cancelled, which Hummingbird calls an error. We have cancelled it: the
/// other listener did not get its port, or a second signal cut the stop short. The operator is told that reason, and
/// would look for a fault here.
struct QuietCancellation: LogHandler {
    private var base: any LogHandler

    init(_ base: any LogHandler) {
        self.base = base
    }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set { base.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        guard event.level == .error, "\(event.message)".hasSuffix("CancellationError()") else {
            return base.log(event: event)
        }
        guard logLevel <= .debug else { return }
        var event = event
        event.level = .debug
        base.log(event: event)
    }
}
