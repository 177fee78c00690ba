import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Foundation
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

@Suite("Messages that are held back, lost and repeated")
struct SigningDelayTests {
    private static let pin = Secret("271828")
    private static let new = Secret("839201")

    private static func world() async throws -> SigningWorld {
        try await SigningWorld.withPIN { _ in
        } change: {
            // Enough for every test to make an invite late.
            $0.freshness = 20 * 365 * 86400
            $0.oneTimeKeys = [OneTimeKeySettings(label: "counted", kind: .counter)]
        }
    }

    @Test("A start of a change that comes late makes another key: the commit is refused, and nothing has changed")
    func lateStart() async throws {
        let world = try await Self.world()
        let (device, container, pin) = try await world.enrolledWithPIN()
        let opened = try #require(try await pin.open("2580"))
        let body = ChangeStartBody(
            change: try await pin.change(.start, opened, from: 0), rid: SigningID(random: device.random),
            blinded: try ObliviousInput(Secret("any")).element.bytes)
        let sealed = try await device.sealed(body.encoded(), sender: container.did.text)
        let proof = try await device.proof(container.did, path: "slots/change-start", body: sealed)
        // It is held back; the user tries again.
        let fresh = try await pin.begin(opened, "7391")
        _ = try await world.send("slots/change-start", proof: proof, body: sealed)
        #expect(try await refusal { _ = try await pin.commit(opened, from: 0) } == "wrong_generation")
        let slot = try #require(await device.status(container.did).slots.first)
        #expect(slot.generation == 0 && slot.state == .open && slot.tries == 5)
        let again = try #require(try await pin.open("2580"))
        let last = try await pin.begin(again, "7391")
        #expect(last.publicKey != fresh.publicKey)
        #expect(try await pin.commit(again, from: 0).slots.first?.generation == 1)
        pin.kept.withLock { old in
            let (r, next, newest) = (old.r, old.next, old.last)
            old = last
            (old.r, old.next, old.last) = (r, next, newest)
        }
        #expect(try await pin.open("7391") != nil)
    }

    /// What a user does, again and again until it is done.
    enum Ceremony: String, CaseIterable, Sendable {
        case enrolment, unlock, approval, claim, record, change, renewal, reset

        /// How many messages a device sends at least.
        var messages: Int { self == .unlock ? 2 : 4 }

        /// Whether it begins with an invite.
        var hasInvite: Bool { self == .enrolment || self == .reset }

        /// Does it once.
        fileprivate func attempt(_ run: Run) async throws {
            switch self {
            case .enrolment: try await run.enrol()
            case .unlock: try await run.container().password(.signing)?.verify(SigningDelayTests.pin)
            case .approval: _ = try await run.sdk.approve(run.container(), on: run.device, pin: SigningDelayTests.pin)
            case .claim: try await run.claim()
            case .record: try await run.record()
            case .change: try await run.change()
            case .renewal: try await run.renew()
            case .reset: try await run.reset()
            }
        }
    }

    /// A user with a device whose network has a postman.
    fileprivate final class Run: Sendable {
        let sdk: SDKWorld
        let device: SigningDevice
        let postman: Postman
        private let known = Locked<SigningContainer?>(nil)
        private let invite = Locked<(invite: SigningInvite, pid: String)?>(nil)
        /// How many invites the user has needed.
        let invites = Locked(0)

        private var world: SigningWorld { sdk.world }

        init(_ ceremony: Ceremony, _ postman: Postman) async throws {
            sdk = try SDKWorld(try await SigningDelayTests.world())
            self.postman = postman
            device = sdk.device(postman: postman)
            guard ceremony != .enrolment else { return }
            let container = try await sdk.enrolled(sdk.device(), pin: SigningDelayTests.pin)
            if ceremony == .renewal { sdk.passUntilDue(container) }
            known.withLock { $0 = container }
        }

        func container() async throws -> SigningContainer {
            try await device.container(try #require(known.withLock { $0 }).id)
        }

        /// Does something with an invite, the same one until it is void: then the user takes another one.
        private func invited(
            did: String? = nil, _ body: (SigningInvite, _ pid: String) async throws -> Void
        ) async throws {
            if invite.withLock({ $0 }) == nil {
                let shown = try await world.provider.invites.make(world.ana, user: nil, did: did)
                let made = (try SigningInvite(scanned: shown.qr.reveal()), shown.pid)
                invite.withLock { $0 = made }
                invites.withLock { $0 += 1 }
            }
            let (current, pid) = try #require(invite.withLock { $0 })
            do {
                try await body(current, pid)
            } catch let error as SigningError where SigningDelayTests.void.contains(error.code) {
                invite.withLock { $0 = nil }
                throw error
            }
        }

        func enrol() async throws {
            try await invited { invite, pid in
                do {
                    let enrolment = try await device.enrol(invite) { _ in SigningDelayTests.pin }
                    let status = try await world.provider.invites.enter(
                        digits: try #require(enrolment.digits), world.ana, pid: pid)
                    #expect(status.state == "ACTIVE")
                    let container = try await device.container(enrolment.containerID)
                    known.withLock { $0 = container }
                } catch let error as SigningError where SigningDelayTests.void.contains(error.code) {
                    for begun in try await device.unfinishedEnrolments() {
                        try await device.abandonEnrolment(begun.id)
                    }
                    throw error
                }
            }
        }

        func claim() async throws {
            var wish = world.wish("numbered")
            wish.user = nil
            wish.origin = DocumentOrigin(place: "Vienna", address: "192.0.2.7")
            let made = try await world.provider.parties.create(wish)
            let info = try await device.retrieveTransactionInfo(try await world.provider.parties.ticket(of: made))
            let receipt = try await info.transaction().setStatus(
                "accept", password: SigningDelayTests.pin, number: made.matchNumber)
            #expect(receipt.effect == .approve)
        }

        func record() async throws {
            let transaction = try await container().record("I have read the contract")
            #expect(try await transaction.setStatus("accept", password: SigningDelayTests.pin).effect == .approve)
        }

        func change() async throws {
            let password = try #require(try await container().password(.signing))
            do {
                try await password.change(from: SigningDelayTests.pin, to: SigningDelayTests.new)
            } catch let error as SigningError where error.code == .wrongPassword {
                // It was changed; only the answer was lost.
                try await password.verify(SigningDelayTests.new)
            }
        }

        func renew() async throws {
            let container = try await container()
            do {
                #expect(try await container.renew { _ in SigningDelayTests.pin }.isDone)
            } catch let error as SigningError where error.code == .freshAuthenticationRequired {
                // It was done; only the answer was lost. The next one is not due.
            }
        }

        func reset() async throws {
            let container = try await container()
            try await invited(did: container.id) { invite, pid in
                let renewal = try await container.renew(invite: invite) { _ in SigningDelayTests.pin }
                _ = try await world.provider.invites.enter(digits: try #require(renewal.digits), world.ana, pid: pid)
            }
        }
    }

    /// What ends an invite: its one commitment was spent, and nothing comes of it. No delay may do that.
    private static let void: Set<SigningError.Code> = [.commitmentChanged, .enrolmentVoid, .invalidCode]

    /// All pairs take minutes: `make soak` tries each, other runs some, so that each message and each moment is there,
    /// and the runs on the two databases have different ones.
    private func isTried(_ kept: Int, _ release: Int, of count: Int) -> Bool {
        Soak.isOn || (kept + release) % (count < 12 ? 7 : 14) == (TestDatabase.isPostgreSQL ? 0 : 3)
    }

    /// A start of an enrolment or of new keys that comes late takes the place of the device's offer: the server refuses
    /// the commitment (`hash_mismatch`), nothing has changed, and the device asks for another one with the same invite.
    @Test(
        "Any one message of a ceremony comes late, or twice, at any later point: it ends well, and the PIN opens the keys",
        arguments: Ceremony.allCases, Postman.Fate.allCases)
    func anyMessage(of ceremony: Ceremony, fate: Postman.Fate) async throws {
        let plain = try await Run(ceremony, Postman())
        try await ceremony.attempt(plain)
        let count = plain.postman.calls
        #expect(count >= ceremony.messages)
        for kept in 0..<count {
            // What fails is done again, from its start at most: that many calls may follow.
            for release in (kept + 1)...(2 * count) where isTried(kept, release, of: count) {
                let run = try await Run(ceremony, Postman(fate, keeping: kept, until: release))
                let place = "message \(kept), before \(release)"
                try await patiently(ceremony, run, place)
                let isOver = run.postman.calls <= release
                await run.postman.deliver()
                #expect(run.invites.withLock { $0 } == (ceremony.hasInvite ? 1 : 0), "\(place)")
                try await check(run, pin: ceremony == .change ? Self.new : Self.pin, place)
                if isOver { break }
            }
        }
    }

    private func patiently(_ ceremony: Ceremony, _ run: Run, _ place: String) async throws {
        var attempts = 0
        while true {
            attempts += 1
            do {
                try await ceremony.attempt(run)
                return
            } catch let error as SigningError {
                try #require(attempts < 5, "\(place): \(error)")
            }
        }
    }

    /// The container is active, the PIN opens its keys, and device and server have one secret for one-time codes.
    private func check(_ run: Run, pin: Secret, _ place: String) async throws {
        let container = try await run.container()
        #expect(try await container.status().state == .active, "\(place)")
        #expect(try await run.sdk.approve(container, on: run.device, pin: pin).effect == .approve, "\(place)")
        let code = try await run.container().oneTimeCode(label: "counted").code.reveal()
        let world = run.sdk.world
        let verdict = try await world.provider.codes.verify(code, label: "counted", user: world.base.ana.user)
        #expect(verdict == .accepted, "\(place)")
    }
}
