import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

/// Keeps what users are told.
final class NewsRecorder: Notifier {
    let news = Locked<[DeviceNews]>([])
    let waiting = Locked<[TransactionNews]>([])

    func notify(_ news: DeviceNews) async { self.news.withLock { $0.append(news) } }
    func notify(_ news: TransactionNews) async { waiting.withLock { $0.append(news) } }
}

@Suite("What a user's other devices are told")
struct SigningNoticeTests {

    private static func world(_ notifier: (any Notifier)? = nil) async throws -> SigningWorld {
        try await SigningWorld(notifier: notifier) { $0.freshness = 20 * 365 * 86400 }
    }

    private static func heard(_ container: SigningContainer) async throws -> [String] {
        _ = try await container.transactionIDs()
        return await container.notices().map { "\($0.event.rawValue) \($0.containerID)" }
    }

    @Test("Each other device hears once of an enrolment, a reset, a suspicion and an end; the device itself does not")
    func events() async throws {
        let notifier = NewsRecorder()
        let world = try await Self.world(notifier)
        let (one, two, three) = (try SDKWorld(world), try SDKWorld(world), try SDKWorld(world))
        let first = try await one.enrolled(one.device())
        #expect(try await Self.heard(first).isEmpty)
        let second = try await two.enrolled(two.device())
        let third = try await three.enrolled(three.device())
        #expect(Set(try await Self.heard(first)) == ["enrolled \(second.id)", "enrolled \(third.id)"])
        #expect(try await Self.heard(second) == ["enrolled \(third.id)"])
        #expect(try await Self.heard(third).isEmpty)
        #expect(try await Self.heard(first).isEmpty)

        let shown = try await world.provider.invites.make(world.ana, user: nil, did: second.id)
        let renewal = try await second.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
        #expect(try await Self.heard(first).isEmpty)
        _ = try await world.provider.invites.enter(digits: try #require(renewal.digits), world.ana, pid: shown.pid)
        _ = try await second.renewed()
        #expect(try await Self.heard(first) == ["reset \(second.id)"])
        try await third.delete()
        #expect(try await Self.heard(first) == ["removed \(third.id)"])
        #expect(Set(try await Self.heard(second)) == ["removed \(third.id)"])
        let told = notifier.news.withLock { $0.map { "\($0.event.rawValue) \($0.did)" } }
        #expect(
            told == [first, second, third].map { "enrolled \($0.id)" }
                + ["reset \(second.id)", "removed \(third.id)"])
    }

    @Test("A user hears once of a transaction that waits, and of none that is refused or has no user yet")
    func transactions() async throws {
        let notifier = NewsRecorder()
        let world = try await Self.world(notifier)
        let wish = world.wish()
        let made = try await world.provider.parties.create(wish)
        _ = try await world.provider.parties.create(wish)
        var other = world.wish("numbered")
        other.user = "nobody"
        #expect(try await refusal { _ = try await world.provider.parties.create(other) } == "not_found")
        other.user = nil
        other.origin = DocumentOrigin(place: "Vienna", address: "192.0.2.7")
        #expect(try await world.provider.parties.create(other).userID.isEmpty)
        let news = TransactionNews(
            issuer: world.name, userID: world.ana.session.user.id, txn: made.txn.text, did: nil,
            expiresAt: made.expiresAt, pushIDs: [])
        #expect(notifier.waiting.withLock { $0 } == [news])
    }

    @Test("A notice comes again until the device has said that it got it")
    func again() async throws {
        let world = try await Self.world()
        let (device, container) = try await world.enrolled()
        let other = try await world.enrolled()
        func list(_ seen: [SigningID] = []) async throws -> [Notice] {
            let list: TransactionList = try await device.askSealed(
                "transactions/list", container.did, ListBody(wait: 25, seen: seen))
            return list.notices
        }
        // It does not wait while there is something to hear.
        let notices = try await list()
        #expect(notices.map(\.did) == [other.container.did] && notices.map(\.event) == [.enrolled])
        #expect(try await list() == notices)
        // Somebody else's word does not make them go.
        let theirs: TransactionList = try await other.device.askSealed(
            "transactions/list", other.container.did, ListBody(wait: 0, seen: notices.map(\.id)))
        #expect(theirs.notices.isEmpty)
        #expect(try await list() == notices)
        let (txn, _) = try await world.asked()
        let known: TransactionList = try await device.askSealed(
            "transactions/list", container.did, ListBody(wait: 0, seen: notices.map(\.id)))
        #expect(known.notices.isEmpty && known.tickets.count == 1)
        _ = txn
    }

    @Test("Another user hears nothing, and a copied store is told to the user's other devices")
    func suspect() async throws {
        let notifier = NewsRecorder()
        let world = try await SigningWorld.withPIN(notifier: notifier)
        let (device, container, pin) = try await world.enrolledWithPIN()
        let (other, listener, _) = try await world.enrolledWithPIN()
        let ben = SigningCaller(world.base.ben)
        let invite = try await world.invite(ben)
        let stranger = try TestDevice(world, modes: [.device, .assisted])
        let (theirs, _) = try await stranger.enrol(invite.code, pin: "2580")
        _ = try await world.provider.invites.enter(digits: theirs.digits, ben, pid: invite.pid)
        let copy = pin.kept.withLock { $0 }
        _ = try await pin.open("2580")
        world.base.clock.advance(by: 60)
        _ = try await pin.open("2580")
        world.base.clock.advance(by: 61)
        pin.kept.withLock { $0 = copy }
        device.forgetTrust()
        #expect(try await refusal { _ = try await pin.open("2580") } == "container_suspect")
        #expect(try await refusal { _ = try await pin.open("2580") } == "container_suspect")
        other.forgetTrust()
        let list: TransactionList = try await other.askSealed(
            "transactions/list", listener.did, ListBody(wait: 0))
        #expect(list.notices.map(\.event) == [.suspect] && list.notices.map(\.did) == [container.did])
        stranger.forgetTrust()
        let nothing: TransactionList = try await stranger.askSealed(
            "transactions/list", theirs.did, ListBody(wait: 0))
        #expect(nothing.notices.isEmpty)
        #expect(notifier.news.withLock { $0.count { $0.event == .suspect } } == 1)
    }

    @Test("A listening device hears of notices, and once that its keys are due")
    func listening() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let container = try await sdk.enrolled(sdk.device())
        let second = try SDKWorld(sdk.world)
        let other = try await second.enrolled(second.device())
        sdk.clock.advance(by: container.renewableFrom.timeIntervalSince(sdk.clock.now) + 60)
        _ = try await sdk.world.asked()
        let heard = Locked<[SigningEvent]>([])
        var iterator = container.transactions { event in heard.withLock { $0.append(event) } }.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        try await first.setStatus("accept")
        _ = try await sdk.world.asked()
        _ = try await iterator.next()
        let events = heard.withLock { $0 }
        #expect(events.count == 2 && events.last == .renewalDue(needsPassword: false))
        guard case .notice(let notice)? = events.first else {
            Issue.record("no notice")
            return
        }
        #expect(notice.containerID == other.id && notice.event == .enrolled)
    }

    @Test("That keys are due is said again each hour, and each time that they are due again")
    func dueAgain() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let device = sdk.device()
        let container = try await sdk.enrolled(device)
        let said = Locked(0)
        var iterator = container.transactions { event in
            if case .renewalDue = event { said.withLock { $0 += 1 } }
        }.makeAsyncIterator()
        func listened() async throws -> Int {
            _ = try await sdk.world.asked()
            let next = try await iterator.next()
            try await #require(next).setStatus("accept")
            return said.withLock { $0 }
        }
        #expect(try await listened() == 0)
        for year in 0..<2 {
            let renewable = try await device.container(container.id).renewableFrom
            sdk.clock.advance(by: renewable.timeIntervalSince(sdk.clock.now) + 60)
            #expect(try await listened() == 3 * year + 1)
            sdk.clock.advance(by: 3000)
            #expect(try await listened() == 3 * year + 1)
            sdk.clock.advance(by: 700)
            #expect(try await listened() == 3 * year + 2)
            sdk.clock.advance(by: 3600)
            #expect(try await listened() == 3 * year + 3)
            try await container.renew()
            #expect(try await listened() == 3 * year + 3)
        }
    }

    @Test("A listening device does not give up a reset that waits for its digits, only one whose time is over")
    func resetWaits() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let world = sdk.world
        let container = try await sdk.enrolled(sdk.device())
        sdk.clock.advance(by: container.renewableFrom.timeIntervalSince(sdk.clock.now) + 60)
        let said = Locked(0)
        func listened() async throws -> Int {
            _ = try await world.asked()
            var iterator = container.transactions { event in
                if case .renewalDue = event { said.withLock { $0 += 1 } }
            }.makeAsyncIterator()
            let next = try await iterator.next()
            try await #require(next).setStatus("accept")
            return said.withLock { $0 }
        }
        func begun() async throws -> (pid: String, digits: String) {
            let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
            let renewal = try await container.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
            return (shown.pid, try #require(renewal.digits))
        }
        _ = try await begun()
        #expect(try await listened() == 0)
        sdk.clock.advance(by: 3600)
        #expect(try await listened() == 1)
        let reset = try await begun()
        #expect(try await listened() == 1)
        _ = try await world.provider.invites.enter(digits: reset.digits, world.ana, pid: reset.pid)
        #expect(Set(try await container.renewed().keys).isDisjoint(with: container.keys))
    }
}
