import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("After a renewal that was interrupted")
struct SigningRenewalRecoveryTests {
    private let pin = Secret("271828")
    private let other = Secret("839201")

    private static func change(_ settings: inout SigningSettings) { settings.freshness = 20 * 365 * 86400 }

    /// A reset of which the user has typed the digits when the app was closed.
    private static func reset() async throws -> (sdk: SDKWorld, container: SigningContainer) {
        let (sdk, container) = try await EnrolledWorlds.plain.next()
        let shown = try await sdk.world.provider.invites.make(sdk.world.ana, user: nil, did: container.id)
        let renewal = try await container.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
        _ = try await sdk.world.provider.invites.enter(
            digits: try #require(renewal.digits), sdk.world.ana, pid: shown.pid)
        return (sdk, container)
    }

    private static func isRevoked(_ sdk: SDKWorld, _ id: String) async throws -> Bool {
        try await sdk.world.provider.devices.find(id)?.state == .revoked
    }

    /// Begins a renewal that is due, which crashes at each moment; then has `body` judge what is left.
    private static func atEachMoment(
        after: Bool, _ body: (SDKWorld, SigningContainer, Comment) async throws -> Void
    ) async throws {
        for moment in SDKWorld.Crash.moments {
            let (sdk, container) = try await EnrolledWorlds.plain.next()
            sdk.passUntilDue(container)
            let crash = SDKWorld.Crash(at: moment, after: after)
            do {
                _ = try await sdk.device(crash).container(container.id).renew()
            } catch is SDKWorld.Crash.Happened {
            }
            try await body(sdk, container, "moment \(moment)")
            guard crash.hasHappened else { return }
        }
        Issue.record("The renewal never ended without a crash.")
    }

    @Test("The device works with whichever keys count, without another renewal", arguments: [false, true])
    func works(after: Bool) async throws {
        try await Self.atEachMoment(after: after) { sdk, container, moment in
            let device = sdk.device()
            let current = try await device.container(container.id)
            #expect(try await current.status().state == .active, moment)
            #expect(try await sdk.approve(current, on: device).effect == .approve, moment)
        }
    }

    @Test("A later renewal succeeds, also when the first one is over at the server", arguments: [false, true])
    func later(after: Bool) async throws {
        try await Self.atEachMoment(after: after) { sdk, container, moment in
            sdk.clock.advance(by: 1600)
            let device = sdk.device()
            do {
                #expect(try await device.container(container.id).renew().isDone, moment)
            } catch let error as SigningError where error.code == .freshAuthenticationRequired {
                // It had ended before the crash, and the next one is not due.
            }
            let renewed = try await device.container(container.id)
            #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)), moment)
            #expect(try await sdk.approve(renewed, on: device).effect == .approve, moment)
            #expect(try await sdk.keys.keyNames().count == renewed.keys.count, moment)
        }
    }

    @Test("A deletion reaches the server with whichever key counts, and leaves no key", arguments: [false, true])
    func deleted(after: Bool) async throws {
        try await Self.atEachMoment(after: after) { sdk, container, moment in
            let isDeleted = try await sdk.device().container(container.id).delete()
            let isRevoked = try await Self.isRevoked(sdk, container.id)
            let left = try await sdk.keys.keyNames()
            #expect(isDeleted && isRevoked && left.isEmpty, "\(moment): \(left)")
            #expect(try await sdk.device().containers().isEmpty, moment)
        }
    }

    @Test("A container whose reset has ended meanwhile is deleted at the server, too")
    func deletedAfterReset() async throws {
        let (sdk, container) = try await Self.reset()
        let outage = Locked<String?>("/device/delete")
        let device = sdk.device(outage: outage)
        #expect(try await !device.container(container.id).delete())
        #expect(try await sdk.keys.keyNames().count <= 2, "the device keys alone")
        outage.withLock { $0 = nil }
        try await sdk.device().sendQueued()
        #expect(try await Self.isRevoked(sdk, container.id))
        #expect(try await sdk.isEmpty)
    }

    @Test("A container that was revoked after its reset is gone when the device hears of it")
    func revokedAfterReset() async throws {
        let (sdk, container) = try await Self.reset()
        _ = try await sdk.world.provider.devices.change(sdk.world.ana, did: container.id, .revoke)
        try await sdk.device().sendQueued()
        #expect(try await sdk.isEmpty)
    }

    @Test(
        "A renewal that is over and was given up does not stop the next one, wherever the process ends",
        arguments: [false, true])
    func givenUp(after: Bool) async throws {
        for moment in SDKWorld.Crash.moments {
            let (sdk, container) = try await EnrolledWorlds.plain.next()
            let world = sdk.world
            let first = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
            _ = try await container.renew(invite: SigningInvite(scanned: first.qr.reveal()))
            sdk.clock.advance(by: 1600)
            let second = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
            let invite = try SigningInvite(scanned: second.qr.reveal())
            let crash = SDKWorld.Crash(at: moment, after: after)
            _ = try? await sdk.device(crash).container(container.id).renew(invite: invite)
            let device = sdk.device()
            let renewal = try await device.container(container.id).renew(invite: invite)
            _ = try await world.provider.invites.enter(
                digits: try #require(renewal.digits), world.ana, pid: second.pid)
            let renewed = try await device.container(container.id).renewed()
            #expect(try await sdk.approve(renewed, on: device).effect == .approve, "moment \(moment)")
            #expect(try await sdk.keys.keyNames().count == renewed.keys.count, "moment \(moment)")
            guard crash.hasHappened else { return }
        }
        Issue.record("The renewal never ended without a crash.")
    }

    @Test(
        "New keys that wait for their digits are kept while the server refuses another renewal beside them",
        arguments: [false, true])
    func refusedBeside(hasCode: Bool) async throws {
        let (sdk, container) = try await EnrolledWorlds.plain.next()
        let world = sdk.world
        let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
        let renewal = try await container.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
        // Without a code none is due, and the code of an enrolment resets nothing.
        let plain = try await world.provider.invites.make(world.ana, user: nil)
        let other = hasCode ? try SigningInvite(scanned: plain.qr.reveal()) : nil
        let refused = await code { try await container.renew(invite: other) }
        #expect(refused == (hasCode ? .invalidCode : .freshAuthenticationRequired))
        _ = try await world.provider.invites.enter(
            digits: try #require(renewal.digits), world.ana, pid: shown.pid)
        let renewed = try await container.renewed()
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        #expect(try await sdk.approve(renewed, on: sdk.device()).effect == .approve)
        #expect(try await sdk.keys.keyNames().count == renewed.keys.count)
    }

    @Test("Many calls that find the key replaced at once all go on with the new one")
    func together() async throws {
        for _ in 0..<4 {
            let (sdk, container) = try await Self.reset()
            let devices = [sdk.device(), sdk.device()]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let mine = try await devices[number % 2].container(container.id)
                        if number < 4 { #expect(try await mine.transactionIDs().isEmpty) }
                        #expect(try await mine.status().state == .active)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("A prompt that asks the device for what is queued, or for the new keys, does not stop the renewal")
    func prompt() async throws {
        let sdk = try SDKWorld(try await SigningWorld.withPIN(change: Self.change))
        let device = sdk.device()
        let container = try await sdk.enrolled(device, pin: pin)
        sdk.passUntilDue(container)
        let renewal = try await container.renew { [pin] _ in
            try await device.sendQueued()
            return pin
        }
        #expect(renewal.isDone)
    }

    @Test("A decision that could not be sent before a renewal is made anew", arguments: ["accept", "deny"])
    func decision(answer: String) async throws {
        let (sdk, container) = try await EnrolledWorlds.plain.next()
        sdk.passUntilDue(container)
        let (asked, outage) = (try await sdk.world.asked(), Locked<String?>("/transactions/decide"))
        let offline = sdk.device(outage: outage)
        let shown = try await Self.shown(asked.txn, offline, container.id)
        await #expect(throws: SigningError(.remote)) { try await shown.setStatus("accept") }
        #expect(try await offline.container(container.id).renew().isDone)
        outage.withLock { $0 = nil }
        // What was shown is for the old keys; with another answer it would be signed before it is sent.
        await #expect(throws: SigningError(.transactionNotFetched)) { try await shown.setStatus(answer) }
        let again = try await Self.shown(asked.txn, sdk.device(), container.id)
        let receipt = try await again.setStatus(answer)
        #expect(receipt.effect == (answer == "accept" ? .approve : .deny))
        try await sdk.device().sendQueued()
    }

    @Test("What the server refuses of the queue does not keep the rest from being sent")
    func queue() async throws {
        let (sdk, container) = try await EnrolledWorlds.plain.next()
        let offline = sdk.device(outage: Locked("/transactions/decide"))
        var all: [SigningID] = []
        for _ in 0..<3 {
            let asked = try await sdk.world.asked()
            all.append(asked.txn)
            let shown = try await Self.shown(asked.txn, offline, container.id)
            await #expect(throws: SigningError(.remote)) { try await shown.setStatus("accept") }
        }
        try await sdk.world.provider.parties.cancel(all[1].text, client: "shop")
        await #expect(throws: SigningError.self) { try await sdk.device().sendQueued() }
        for (txn, state) in zip(all, ["APPROVED", "CANCELED", "APPROVED"]) {
            #expect(try await sdk.world.state(txn) == state)
        }
    }

    @Test("A PIN that only the device knows stays the one that it was changed to, whatever a renewal had begun")
    func localPIN() async throws {
        let world = try await SigningWorld.withPIN(change: {
            Self.change(&$0)
            $0.policies = [
                ProtectionPolicy(
                    id: "pin", biometry: false,
                    password: ProtectionPolicy.Password(
                        mode: .local, cost: $0.policies[0].password!.cost, rules: SigningWorld.rules(),
                        lock: .local(.counter(max: 5))))
            ]
            $0.keys = [SigningSettings.offered(.sign, "payments", policy: "pin", of: $0.policies)]
        })
        for (place, isChanged) in [("/renew/commit", true), ("/renew/confirm", false)] {
            let sdk = try SDKWorld(world)
            let outage = Locked<String?>(nil)
            let device = sdk.device(outage: outage)
            let container = try await sdk.enrolled(device, pin: pin)
            sdk.passUntilDue(container)
            outage.withLock { $0 = place }
            let failed = await code { try await container.renew { [pin] _ in pin } }
            #expect(failed == .remote)
            outage.withLock { $0 = nil }
            let password = try #require(container.password(.signing))
            let refused = await code { try await password.change(from: pin, to: other) }
            #expect(refused == (isChanged ? nil : .busy), "\(place)")
            let now = isChanged ? other : pin
            let renewal = try await device.container(container.id).renew { _ in now }
            #expect(renewal.isDone, "\(place)")
            let renewed = try await sdk.device().container(container.id)
            let receipt = try await sdk.approve(renewed, on: sdk.device(), pin: now)
            #expect(receipt.effect == .approve, "\(place)")
        }
    }

    /// The code that something is refused with.
    private func code(_ body: () async throws -> Void) async -> SigningError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? SigningError)?.code ?? SigningError.Code("\(error)")
        }
    }

    private static func shown(_ txn: SigningID, _ device: SigningDevice, _ id: String) async throws
        -> SigningTransaction
    {
        for ticket in try await device.container(id).transactionIDs() {
            let info = try await device.retrieveTransactionInfo(ticket)
            if info.transactionID == txn.text { return try await info.transaction() }
        }
        throw TestRefusal("not in the list")
    }
}
