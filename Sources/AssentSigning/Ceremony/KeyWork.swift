import AssentCore
import AssentSigningProtocol

/// Keys that are on their way, and where that is stored: a new container's in its record, those of a renewal beside the
/// container, which has its old keys until the new ones are its own.
enum KeyWork: Sendable {
    case enrolment(ContainerRecord)
    case renewal(RenewalRecord)

    /// The container with the keys that are on their way.
    var next: ContainerRecord {
        switch self {
        case .enrolment(let record): record
        case .renewal(let renewal): renewal.next
        }
    }

    var isRenewal: Bool {
        if case .renewal = self { return true }
        return false
    }

    var beginning: KeyCeremony.Beginning {
        switch self {
        case .enrolment: .invite
        case .renewal(let renewal): .container(sub: renewal.next.sub ?? "", hasCode: renewal.hasCode)
        }
    }

    /// The ceremony, as far as it is stored.
    var ceremony: KeyCeremony { KeyCeremony(beginning, at: next.phase) }

    /// Takes an event, and stores what follows from it with `change`. An event that another process was faster with
    /// changes nothing.
    mutating func take(
        _ event: KeyCeremony.Event, in records: ContainerStore,
        also change: (inout ContainerRecord) -> Void = { _ in }
    ) async throws {
        let beginning = beginning
        switch self {
        case .enrolment(let record):
            self = .enrolment(
                try await records.modify(record.id) { record in
                    if try record.take(event, in: beginning) { change(&record) }
                })
        case .renewal(var renewal):
            guard try renewal.next.take(event, in: beginning) else { return }
            change(&renewal.next)
            try await records.keep(renewal)
            self = .renewal(renewal)
        }
    }
}
