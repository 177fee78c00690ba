import AssentCore
import AssentStore

@testable import AssentEngine

/// What is asked about the instances of an app.
enum RegistrationAct: CaseIterable, Sendable {
    case register, change, end, endByAdministrator
    /// A token of the instance's own.
    case token

    /// What the audit log calls it; `nil` where that is another matter.
    var event: AuditEvent? {
        switch self {
        case .register: .registrationCreate
        case .change: .registrationUpdate
        case .end, .endByAdministrator: .registrationEnd
        case .token: nil
        }
    }
}

/// What a node of an exploration answers.
enum RegistrationReply: Sendable, Hashable {
    /// So many instances were registered, changed or ended.
    case done(Int64)
    case refused(String)
    /// It was not done.
    case unavailable
    /// Nobody knows whether it was done.
    case unknown
    /// The node's process has died.
    case died
    /// What nobody may be told.
    case failed(String)

    /// Asks, at a node that may die meanwhile.
    init(from node: NodeDatabase? = nil, _ ask: () async throws -> Int64) async {
        do {
            let count = try await ask()
            self = node?.isDead == true ? .died : .done(count)
        } catch {
            self = node?.isDead == true ? .died : RegistrationReply(error)
        }
    }

    private init(_ error: any Error) {
        switch error {
        case let error as OAuthError: self = .refused(error.code.rawValue)
        case let error as EngineError where error.code == .notFound: self = .refused("notFound")
        case let error as StoreError where error.code == .unavailable: self = .unavailable
        // Over HTTP this is `temporarily_unavailable`, and never a refusal.
        case let error as StoreError
        where error.code == .outcomeUnknown && OAuthError(answering: error).code == .temporarilyUnavailable:
            self = .unknown
        default: self = .failed("\(error)")
        }
    }

    /// How many instances it says were registered, changed or ended.
    var count: Int64 {
        if case .done(let count) = self { return count }
        return 0
    }

    var refusal: String? {
        if case .refused(let code) = self { return code }
        return nil
    }

    /// Whether it may have been done, and nobody was told.
    var mayBeDone: Bool { self == .unknown || self == .died }
}

/// An answer, and to what.
struct RegistrationAnswer: Sendable {
    let act: RegistrationAct
    let reply: RegistrationReply
}

extension ProviderFixture {
    /// What has been done with instances, by the audit log.
    func registrationRecords() async throws -> [AuditEvent: Int64] {
        var records: [AuditEvent: Int64] = [:]
        for event in [AuditEvent.registrationCreate, .registrationUpdate, .registrationEnd] {
            records[event] = try await count("audit", where: "outcome = 'success' AND event = '\(event.rawValue)'")
        }
        return records
    }

    /// What is wrong in the store with the instances of the app `pay`, of which there were none before what `records`
    /// says was done.
    func registrationFaults(_ records: [AuditEvent: Int64]) async throws -> [String] {
        var faults: [String] = []
        let instances = try await count("client_instances")
        let counted =
            try await database.run(.read("SELECT instances FROM registered_apps WHERE app = 'pay'")).first?
            .integer("instances") ?? 0
        if counted != instances { faults.append("\(instances) instances are counted as \(counted)") }
        let left = records[.registrationCreate, default: 0] - records[.registrationEnd, default: 0]
        if left != instances { faults.append("\(instances) instances, and \(left) by the audit log") }
        let unrecorded = try await count(
            "client_instances",
            where: """
                1 <> (SELECT count(*) FROM audit WHERE event = 'registration.create' AND outcome = 'success'
                    AND detail LIKE ('%"client":"' || client_instances.id || '"%'))
                """)
        if unrecorded != 0 { faults.append("\(unrecorded) instances without an audit record") }
        let orphans = try await count(
            "grants", where: "client_id LIKE 'pay~%' AND client_id NOT IN (SELECT id FROM client_instances)")
        if orphans != 0 { faults.append("\(orphans) grants of instances that have ended") }
        return faults
    }
}
