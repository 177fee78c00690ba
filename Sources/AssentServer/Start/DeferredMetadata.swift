import Logging

/// Gives metadata to the handler behind it when something is logged.
///
/// Hummingbird names each request in its logger's metadata, and swift-log's own handlers format metadata as soon as it
/// is set: work for a line that is hardly ever written.
struct DeferredMetadata: LogHandler {
    private var base: any LogHandler
    var metadata: Logger.Metadata = [:]

    init(_ base: any LogHandler) {
        self.base = base
    }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set { base.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] ?? base[metadataKey: key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var base = base
        for (key, value) in metadata { base[metadataKey: key] = value }
        base.log(event: event)
    }
}
