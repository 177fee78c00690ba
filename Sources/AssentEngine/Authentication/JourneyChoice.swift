import AssentCore

/// Which journey a request asks for.
enum JourneyChoice: Sendable, Hashable {
    /// This one; a session that has passed it already is enough unless `always`.
    case journey(String, always: Bool)
    /// The realm's own; any session is enough unless that journey must run.
    case standard
    /// The one that a transaction names.
    case transaction(id: String)
}

extension AuthenticateRequest {
    /// Reads `authIndexType` and `authIndexValue`.
    ///
    /// - Throws: ``EngineError``.
    func choice(in settings: RealmSignIn) throws(EngineError) -> JourneyChoice {
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
            guard let level = Int(try Self.required(value)) else { throw EngineError(.unknownJourney) }
            return try Self.choice(level: level, in: settings)
        default:
            throw EngineError(.unknownIndexType)
        }
    }

    private func choice(advice text: String, in settings: RealmSignIn) throws(EngineError) -> JourneyChoice {
        let advice: Advice
        do {
            advice = try CompositeAdvice.parse(text)
        } catch {
            throw EngineError.invalidRequest("The advice cannot be read: \(error).")
        }
        switch advice.kind {
        case .transaction(let id):
            return .transaction(id: id)
        case .service(let journey, let realm):
            if let realm, realm != self.realm {
                throw EngineError(.unknownRealm, about: String(realm.prefix(100)))
            }
            return .journey(journey, always: true)
        case .other(.authLevel, let values):
            // Of several levels the lowest will do.
            let levels = values.compactMap { Int($0.split(separator: ":").last ?? "") }
            guard let level = levels.min() else { throw EngineError(.unknownJourney) }
            return try Self.choice(level: level, in: settings)
        case .other(.realm, let values):
            guard values.contains(self.realm), let journey = settings.defaultJourney else {
                throw EngineError(.unknownJourney)
            }
            return .journey(journey, always: true)
        case .other(let name, _):
            throw EngineError.invalidRequest("The advice \(name.rawValue.prefix(100)) is not supported.")
        }
    }

    /// The journey of the lowest level that is high enough; of several the first by name. (AM lets the user choose.)
    private static func choice(level: Int, in settings: RealmSignIn) throws(EngineError) -> JourneyChoice {
        let found = settings.journeys.values.map(\.definition)
            .filter { $0.authLevel >= level && !$0.transactionalOnly && !$0.noSession }
            .min { ($0.authLevel, $0.name) < ($1.authLevel, $1.name) }
        guard let found else { throw EngineError(.unknownJourney) }
        return .journey(found.name, always: true)
    }

    private static func required(_ value: String?) throws(EngineError) -> String {
        guard let value else { throw EngineError.invalidRequest("authIndexValue is missing.") }
        return value
    }
}
