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
        case enrolment, approval, change, renewal

        /// Does it once.
        fileprivate func attempt(_ run: Run) async throws {
            switch self {
            case .enrolment: try await run.enrol()
            case .approval: _ = try await run.sdk.approve(run.container(), on: run.device, pin: SigningDelayTests.pin)
            case .change: try await run.change()
            case .renewal: try await run.renew()
            }
        }
    }

    /// A user with a device whose network has a postman.
    fileprivate final class Run: Sendable {
        let sdk: SDKWorld
        let device: SigningDevice
        let postman: Postman
        private let known = Locked<SigningContainer?>(nil)
        private let invite: SigningInvite
        private let pid: String

        init(_ ceremony: Ceremony, _ postman: Postman) async throws {
            sdk = try SDKWorld(try await SigningDelayTests.world())
            self.postman = postman
            let shown = try await sdk.world.provider.invites.make(sdk.world.ana, user: nil)
            invite = try SigningInvite(scanned: shown.qr.reveal())
            pid = shown.pid
            device = sdk.device(postman: postman)
            guard ceremony != .enrolment else { return }
            let container = try await sdk.enrolled(sdk.device(), pin: SigningDelayTests.pin)
            if ceremony == .renewal { sdk.passUntilDue(container) }
            known.withLock { $0 = container }
        }

        func container() async throws -> SigningContainer {
            try await device.container(try #require(known.withLock { $0 }).id)
        }

        func enrol() async throws {
            let enrolment = try await device.enrol(invite) { _ in SigningDelayTests.pin }
            let status = try await sdk.world.provider.invites.enter(
                digits: try #require(enrolment.digits), sdk.world.ana, pid: pid)
            #expect(status.state == "ACTIVE")
            let container = try await device.container(enrolment.containerID)
            known.withLock { $0 = container }
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
    }

    /// All pairs take minutes: `make soak` tries each, other runs some, so that each message and each moment is there.
    private func isTried(_ kept: Int, _ release: Int) -> Bool {
        Soak.isOn || (kept + release).isMultiple(of: TestDatabase.isPostgreSQL ? 7 : 3)
    }

    @Test(
        "Any one message of a ceremony comes late, or twice, at any later point: it ends well, and the PIN opens the keys",
        // After a late start of an enrolment or renewal the server refuses the keys (`hash_mismatch`): it begins anew.
        arguments: [Ceremony.approval, .change], Postman.Fate.allCases)
    func anyMessage(of ceremony: Ceremony, fate: Postman.Fate) async throws {
        let plain = try await Run(ceremony, Postman())
        try await ceremony.attempt(plain)
        let count = plain.postman.calls
        #expect(count >= 4)
        for kept in 0..<count {
            // What fails is done again, from its start at most: that many calls may follow.
            for release in (kept + 1)...(2 * count) where isTried(kept, release) {
                let postman = Postman(fate, keeping: kept, until: release)
                let run = try await Run(ceremony, postman)
                let place = "message \(kept), before \(release)"
                var attempts = 0
                while true {
                    attempts += 1
                    do {
                        try await ceremony.attempt(run)
                        break
                    } catch let error as SigningError {
                        try #require(attempts < 5, "\(place): \(error)")
                    }
                }
                let isOver = postman.calls <= release
                await postman.deliver()
                let pin = ceremony == .change ? Self.new : Self.pin
                let container = try await run.container()
                #expect(try await container.status().state == .active, "\(place)")
                #expect(try await run.sdk.approve(container, on: run.device, pin: pin).effect == .approve, "\(place)")
                if isOver { break }
            }
        }
    }
}
