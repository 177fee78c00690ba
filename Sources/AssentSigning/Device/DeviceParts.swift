import AssentCore
import AssentSigningProtocol
import Foundation
import Logging

/// What a device is made of. Each type of this module that answers one question has these, and nothing else.
struct DeviceParts: Sendable {
    let records: ContainerStore
    let keys: any KeyProvider
    let http: SigningHTTP
    let configuration: SigningDeviceConfiguration
    let clock: any WallClock
    let random: any RandomSource
    let logger: Logger
    /// The time since some moment, by a clock that nobody can set.
    let uptime: @Sendable () -> Duration
    let stretch: SigningDevice.PasswordStretching
    let memory = DeviceMemory()

    var calls: CallRunner { CallRunner(parts: self) }
    var provider: ContainerKeys { ContainerKeys(provider: keys) }
    var containers: Containers { Containers(parts: self) }
    var passwords: KeyOpening { KeyOpening(parts: self) }
    var sealing: KeySealing { KeySealing(parts: self) }
    var newPasswords: NewPasswords { NewPasswords(parts: self) }
    var newKeys: NewKeys { NewKeys(parts: self) }
    var renewals: Renewals { Renewals(parts: self) }

    /// Waits two seconds before the server is asked again.
    func pause() async throws { try await clock.sleep(until: clock.now.addingTimeInterval(2)) }

    /// What nobody else does at the same time, in this process or another one. Anyone who needs the leases of a renewal
    /// and of a password takes the renewal's first.
    enum Work {
        /// Begin an enrolment: two taps on one button are one.
        case begin
        /// Enrol with the session of the app's user.
        case own
        case enrolment(SigningID)
        /// Renew, or do something that a renewal would undo.
        case renewal(SigningID)
        case password(SigningID, PasswordSlot)
        case decision(SigningID, SigningID)

        var name: String {
            switch self {
            case .begin: "signing.enrolment"
            case .own: "signing.own"
            case .enrolment(let id): "signing.enrolment.\(id.text)"
            case .renewal(let id): "signing.renewal.\(id.text)"
            case .password(let id, let slot): "signing.password.\(id.text).\(slot.rawValue)"
            case .decision(let id, let txn): "signing.decide.\(id.text).\(txn.text)"
            }
        }
    }

    /// Leases in this order, so that nobody else does the same work; waits at most 120 seconds for each. They are held
    /// beside the work, not around it: nothing of them lies between an app's call and the socket.
    func hold(_ works: Work...) async throws -> HeldLeases {
        var held = HeldLeases()
        for work in works {
            do {
                held.leases.append(
                    try await records.store.lease(work.name, deadline: clock.now.addingTimeInterval(120)))
            } catch {
                await held.release()
                throw error
            }
        }
        return held
    }
}

/// Leases that are to be released, whatever happens.
struct HeldLeases: Sendable {
    var leases: [any SecretLease] = []

    func release() async {
        for lease in leases.reversed() { await lease.release() }
    }
}
