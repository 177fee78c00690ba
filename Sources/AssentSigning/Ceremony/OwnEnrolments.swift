import AssentCore
import AssentSigningProtocol
import Logging

/// Performs the steps of ``OwnEnrolment``. Nobody else does at the same time.
struct OwnEnrolments: Sendable {
    let parts: DeviceParts
    let calls: InviteCalls

    /// What one enrolment has at hand on its way.
    private struct Work {
        var enrolment: OwnEnrolment
        var record: SigningID?
        var invite: SigningInvite?
        var error: (any Error)?
    }

    /// Enrols this device for the user whose session ``calls`` have.
    ///
    /// - Returns: the container's id.
    func enrol(name: String?, pushID: String?, password: SigningPasswordPrompt?) async throws -> String {
        let held = try await parts.hold(.own)
        do {
            let left = try await leftover()
            var work = Work(enrolment: OwnEnrolment(after: left.map(Self.state) ?? .nothing), record: left?.id)
            while true {
                switch work.enrolment.next {
                case .done:
                    let did = try await known(work).knownDid.text
                    await held.release()
                    return did
                case .fail: throw work.error ?? SigningError(.internal)
                case let step:
                    do {
                        let event: OwnEnrolment.Event
                        if step == .enrol {
                            let id = try await begun(&work, name: name, pushID: pushID)
                            let enrolment = try await Enrolments(parts: parts).resume(id, password)
                            event = .enrolled(hasDigits: enrolment.digits != nil)
                        } else {
                            event = try await perform(step, &work)
                        }
                        guard work.enrolment.take(event) else { throw SigningError(.internal) }
                    } catch let error as SigningError {
                        work.error = error
                        guard work.enrolment.take(.failed(Self.failure(error))) else { throw error }
                    }
                }
            }
        } catch {
            await held.release()
            throw error
        }
    }

    /// What an earlier call has begun here and not brought to an end.
    private func leftover() async throws -> ContainerRecord? {
        try await parts.records.all().last { $0.isInterrupted && StrictJSON.same($0.issuer, calls.issuer) }
    }

    private static func state(_ record: ContainerRecord) -> OwnEnrolment.Leftover {
        record.phase.isConfirmed ? .unconfirmed : .unfinished
    }

    /// What the refusal of a step means. Nobody has signed it.
    static func failure(_ error: SigningError) -> OwnEnrolment.Failure {
        switch error.code {
        case .remote, .unavailable, .serverAuthentication: .noAnswer
        case .digitsWrong: .wrongDigits
        case .enrolmentVoid, .invalidCode, .commitmentChanged, .notFound, .credentialsLost: .ended
        default: .other
        }
    }

    /// The enrolment that is to go on: with what is left of an earlier one, or with the invite.
    private func begun(_ work: inout Work, name: String?, pushID: String?) async throws -> SigningID {
        if let id = work.record { return id }
        guard let invite = work.invite else { throw SigningError(.internal) }
        let id = try await Enrolments(parts: parts).begin(invite, name: name, pushID: pushID, isOwn: true)
        work.record = id
        return id
    }

    private func perform(_ step: OwnEnrolment.Step, _ work: inout Work) async throws -> OwnEnrolment.Event {
        switch step {
        case .makeInvite:
            (work.record, work.error) = (nil, nil)
            work.invite = try await calls.invite()
            return .invited
        case .sendDigits:
            let record = try await known(work)
            guard let pid = record.pid, let digits = try record.enrolmentValue()?.digits else {
                throw SigningError(.internal)
            }
            try await calls.send(digits: digits, of: pid)
            work.error = nil
            return .digitsTaken
        case .askStatus:
            let state = try await parts.containers.status(of: try await known(work).id).state
            work.error = Self.error(state)
            return .status(state)
        case .discard:
            let id = try await known(work).id
            try await parts.containers.removeAll(of: parts.records.modify(id) { $0.ended = true })
            return .cleared
        case .withdraw:
            // Somebody is in between. If the server cannot be told, the digits are wrong the next time, too.
            let record = try await known(work)
            do {
                if let pid = record.pid { try await calls.withdraw(pid) }
                _ = try await parts.containers.status(of: record.id)
            } catch let error as SigningError {
                parts.logger.notice(
                    "wrong digits: the enrolment could not be ended", metadata: ["code": "\(error.code)"])
            }
            return .cleared
        case .enrol, .done, .fail: throw SigningError(.internal)
        }
    }

    /// Why a container in this state is not usable.
    private static func error(_ state: ContainerState) -> SigningError? {
        switch state {
        case .active: nil
        case .unconfirmed: SigningError(.notActive)
        case .void, .revoked: SigningError(.enrolmentVoid)
        case .suspect: SigningError(.containerSuspect)
        case .blocked: SigningError(.containerBlocked)
        }
    }

    private func known(_ work: Work) async throws -> ContainerRecord {
        guard let id = work.record else { throw SigningError(.internal) }
        return try await parts.records.load(id)
    }
}
