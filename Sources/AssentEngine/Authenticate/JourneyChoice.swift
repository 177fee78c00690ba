import AssentCore

/// Which journey a request asks for.
enum JourneyChoice: Sendable, Hashable {
    /// This one; a session that has passed it already is enough unless `always`.
    case journey(String, always: Bool)
    /// The realm's own; any session is enough.
    case standard
    /// The one that a transaction names.
    case transaction(id: String)
}

extension AuthenticateRequest {
    /// Reads `authIndexType` and `authIndexValue`.
    ///
    /// - Throws: ``EngineError`` 400.
    func choice(in settings: RealmAuthentication) throws(EngineError) -> JourneyChoice {
        let value = authIndexValue.flatMap { $0.isEmpty ? nil : $0 }
        switch authIndexType?.lowercased() {
        case nil:
            return .standard
        case "service":
            return value.map { .journey($0, always: false) } ?? .standard
        case "transaction":
            return .transaction(id: try Self.required(value))
        case "composite_advice":
            return try choice(advice: try Self.required(value), in: settings)
        case "level":
            guard let level = Int(try Self.required(value)) else { throw .noConfiguration }
            return try Self.choice(level: level, in: settings)
        default:
            throw EngineError(status: 400, "Unknown Authentication Index Type")
        }
    }

    private func choice(advice text: String, in settings: RealmAuthentication) throws(EngineError) -> JourneyChoice {
        let advice: Advice
        do {
            advice = try CompositeAdvice.parse(text)
        } catch {
            throw EngineError(status: 400, "The advice cannot be read: \(error).")
        }
        switch advice.kind {
        case .transaction(let id):
            return .transaction(id: id)
        case .service(let journey, let realm):
            if let realm, realm != self.realm { throw EngineError(status: 400, "Invalid realm, \(realm.prefix(100))") }
            return .journey(journey, always: true)
        case .other(.authLevel, let values):
            // Of several levels the lowest will do.
            let levels = values.compactMap { Int($0.split(separator: ":").last ?? "") }
            guard let level = levels.min() else { throw .noConfiguration }
            return try Self.choice(level: level, in: settings)
        case .other(.realm, let values):
            guard values.contains(self.realm), let journey = settings.defaultJourney else { throw .noConfiguration }
            return .journey(journey, always: true)
        case .other(let name, _):
            throw EngineError(status: 400, "The advice \(name.rawValue.prefix(100)) is not supported.")
        }
    }

    /// The journey of the lowest level that is high enough; of several the first by name. (AM lets the user choose.)
    private static func choice(level: Int, in settings: RealmAuthentication) throws(EngineError) -> JourneyChoice {
        let found = settings.journeys.values.filter { $0.authLevel >= level && !$0.transactionalOnly && !$0.noSession }
            .min { ($0.authLevel, $0.name) < ($1.authLevel, $1.name) }
        guard let found else { throw .noConfiguration }
        return .journey(found.name, always: true)
    }

    private static func required(_ value: String?) throws(EngineError) -> String {
        guard let value else { throw EngineError(status: 400, "authIndexValue is missing.") }
        return value
    }
}

extension EngineError {
    /// AM's answer to a journey that does not exist, and to one that may not be run here.
    static let noConfiguration = EngineError(status: 400, "No Configuration found", errorCode: "105")

    /// AM's answer when a journey's time is over.
    static let timedOut = EngineError(status: 401, "Session has timed out", errorCode: "110")

    /// AM's answer to a journey that has failed.
    static let loginFailure = EngineError(status: 401, "Login failure", failureURL: "")
}
