import AssentCore

/// The classes of sign-ins that clients may ask for and are told about (`acr`, OpenID Connect Core §2): those that the
/// operator's file lists, and each journey by its own name.
package struct AuthenticationContexts: Sendable, Hashable {
    /// What must have happened for a class to be reached.
    package enum Requirement: Sendable, Hashable {
        /// The session has passed this journey.
        case journey(String)
        /// The session has at least this level.
        case level(Int)
    }

    /// A class of the file.
    package struct Context: Sendable, Hashable {
        /// The value of `acr`.
        package let value: String

        /// What it takes.
        package let requirement: Requirement

        /// A class.
        package init(_ value: String, _ requirement: Requirement) {
            self.value = value
            self.requirement = requirement
        }
    }

    /// The classes of the file, the strongest first.
    package let listed: [Context]

    /// The levels of the journeys by which somebody can sign in.
    private let levels: [String: Int]

    /// The classes of a realm with these journeys.
    package init(_ listed: [Context] = [], journeys: [JourneyDefinition] = []) {
        self.listed = listed
        let usable = journeys.filter { !$0.transactionalOnly && !$0.noSession }
        levels = Dictionary(usable.map { ($0.name, $0.authLevel) }, uniquingKeysWith: { $1 })
    }

    /// Whether a text can be a value of `acr`: it stands in lists with spaces between, and in challenges.
    package static func isValue(_ text: String) -> Bool {
        (1...256).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\",\\".utf8.contains($0) }
    }

    /// Whether somebody who signs in can meet a requirement.
    package func canBeMet(_ requirement: Requirement) -> Bool {
        switch requirement {
        case .journey(let name): levels[name] != nil
        case .level(let level): levels.values.contains { $0 >= level }
        }
    }

    /// What a value that a client asks for takes; `nil` for a value that nobody knows, which counts for nothing: the
    /// wish is voluntary (OpenID Connect Core §3.1.2.1).
    func requirement(of value: String) -> Requirement? {
        if let context = listed.first(where: { $0.value == value }) { return context.requirement }
        return levels[value].map { _ in .journey(value) }
    }

    /// What a user must do before one of the wanted values is reached: what the first known one takes. `nil` when one
    /// is reached, or none is known.
    func unmet(_ wanted: [String], by session: LiveSession?) -> Requirement? {
        let known = wanted.compactMap(requirement)
        guard let session else { return known.first }
        return known.contains { Self.meets($0, session) } ? nil : known.first
    }

    /// The class that a session has reached: of the wanted ones the first, else the first of the file.
    func reached(by session: LiveSession, wanted: [String]) -> String? {
        let asked = wanted.first { value in requirement(of: value).map { Self.meets($0, session) } ?? false }
        return asked ?? listed.first { Self.meets($0.requirement, session) }?.value
    }

    /// The values by which a client gets a sign-in that meets an advice, the least demanding first (RFC 9470 §3).
    func values(meeting advice: Advice, realm: String) -> [String] {
        switch advice.kind {
        case .service(let journey, let named):
            guard named == nil || named == realm, levels[journey] != nil else { return [] }
            let values = listed.reversed().filter { $0.requirement == .journey(journey) }.map(\.value)
            return (values + [journey]).filter(Self.isValue)
        case .other(.authLevel, let values):
            guard let level = values.compactMap(Int.init).min() else { return [] }
            let listed = listed.reversed().filter { isEnough($0.requirement, for: level) }.map(\.value)
            guard listed.isEmpty else { return listed }
            let journey = levels.filter { $0.value >= level }.min { ($0.value, $0.key) < ($1.value, $1.key) }
            return [journey?.key].compactMap(\.self).filter(Self.isValue)
        default: return []
        }
    }

    private func isEnough(_ requirement: Requirement, for level: Int) -> Bool {
        switch requirement {
        case .journey(let name): levels[name].map { $0 >= level } ?? false
        case .level(let other): other >= level
        }
    }

    private static func meets(_ requirement: Requirement, _ session: LiveSession) -> Bool {
        switch requirement {
        case .journey(let name): session.passedJourneys.contains(name)
        case .level(let level): session.authLevel >= level
        }
    }
}
