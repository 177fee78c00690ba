import AssentCore
import AssentPayload
import Crypto
import Foundation
import TestSupport
import Testing

@Suite("Payload encryption: what a client does with each answer")
struct ClientSessionTests {
    static let start = Date(timeIntervalSince1970: 1_900_000_000)
    private let keys: [ClientSession.Key]
    private let secrets: PayloadSecrets

    init() throws {
        keys = try [0x11, 0x12, 0x13].map { byte in
            ClientSession.Key(
                try PayloadKey(of: PayloadVectors.key(byte)),
                notAfter: byte == 0x12 ? Self.start : Self.start.addingTimeInterval(1_000_000))
        }
        secrets = try PayloadVectors.client()
    }

    private func fresh(_ role: PayloadPeer.Role = .device) -> ClientSession { ClientSession(role: role, keys: keys) }

    /// A session whose handshake has succeeded for call 1, which was sent.
    private func sent(mayRepeat: Bool) -> ClientSession {
        var session = fresh()
        _ = session.take(.begin(.init(id: 1, mayRepeat: mayRepeat)), at: Self.start)
        _ = session.take(.handshake(attempt: 1, .agreed(secrets, expires: 43_200)), at: Self.start)
        return session
    }

    private func gaveUp(
        _ id: Int, _ reason: ClientSession.Failure.Reason, _ mayHaveHadEffect: Bool
    ) -> ClientSession.Action {
        .giveUp(id, .init(reason: reason, mayHaveHadEffect: mayHaveHadEffect))
    }

    @Test("Row 36 (answers): each line of the table, for calls that may be repeated and for those that may not")
    func answers() throws {
        for answer in ClientSession.Answer.allCases {
            for mayRepeat in [true, false] {
                var session = sent(mayRepeat: mayRepeat)
                let again = { (reason: ClientSession.Failure.Reason) -> ClientSession.Action in
                    mayRepeat ? .repeatAbove(1) : self.gaveUp(1, reason, true)
                }
                let expected: [ClientSession.Action] =
                    switch answer {
                    case .sealed: [.handOver(1)]
                    case .other, .staleConnection: [again(.noReply)]
                    case .unknownSession: [.handshake(attempt: 2, keys[0].key), again(.unknownSession)]
                    case .notSent: [gaveUp(1, .notConnected, false)]
                    }
                #expect(session.take(.answer(1, answer), at: Self.start) == expected, "\(answer), \(mayRepeat)")
                // Another answer to the same call is none.
                #expect(session.take(.answer(1, .sealed), at: Self.start) == [])
                #expect(session.pending == 0)
            }
        }
    }

    @Test("A call for which there is a session begins at once, and one that has to wait leaves all as it is")
    func ready() throws {
        let call = ClientSession.Call(id: 2, mayRepeat: true)
        var session = fresh()
        #expect(session.message(for: call, at: Self.start) == nil)
        #expect(session.pending == 0)
        session = sent(mayRepeat: true)
        // Nothing is begun twice.
        #expect(session.message(for: .init(id: 1, mayRepeat: true), at: Self.start) == nil)
        let begun = session.message(for: call, at: Self.start)
        let message = try #require(begun)
        #expect((message.session, message.number) == (1, 2))
        #expect(session.pending == 2)
        session.takeSealedReply(to: 2)
        #expect(session.pending == 1)
        // Another answer to the same call is none.
        #expect(session.take(.answer(2, .other), at: Self.start) == [])
        // A session that nobody has used for too long is left to the call that waits for another one.
        let late = Self.start.addingTimeInterval(ClientSession.idleLimit)
        #expect(session.message(for: .init(id: 3, mayRepeat: true), at: late) == nil)
        #expect(session.take(.begin(.init(id: 3, mayRepeat: true)), at: late).last == .wait(3))
    }

    @Test("A repetition goes through the new session, with a number of its own, and is not repeated again")
    func repetition() throws {
        var session = sent(mayRepeat: true)
        #expect(session.take(.answer(1, .unknownSession), at: Self.start).last == .repeatAbove(1))
        #expect(session.take(.begin(.init(id: 2, mayRepeat: false)), at: Self.start) == [.wait(2)])
        let sent = session.take(.handshake(attempt: 2, .agreed(secrets, expires: 43_200)), at: Self.start)
        #expect(sent.count == 1)
        guard case .send(2, let message)? = sent.first else {
            Issue.record("\(sent)")
            return
        }
        #expect((message.session, message.number) == (2, 1))
        #expect(session.take(.answer(2, .other), at: Self.start) == [gaveUp(2, .noReply, true)])
    }

    @Test("Row 36 (handshake): each refusal, and what follows from it for the calls that wait")
    func handshakes() throws {
        func refused(
            _ refusal: PayloadRefusal, _ role: PayloadPeer.Role = .device, after: Int? = nil
        ) -> (ClientSession, [ClientSession.Action]) {
            var session = fresh(role)
            let begun = session.take(.begin(.init(id: 1, mayRepeat: true)), at: Self.start)
            #expect(begun == [.handshake(attempt: 1, keys[0].key), .wait(1)])
            #expect(session.take(.begin(.init(id: 2, mayRepeat: false)), at: Self.start) == [.wait(2)])
            let actions = session.take(
                .handshake(attempt: 1, .refused(refusal, retryAfter: after)), at: Self.start)
            return (session, actions)
        }
        func ended(_ reason: ClientSession.Failure.Reason) -> [ClientSession.Action] {
            [gaveUp(1, reason, false), gaveUp(2, reason, false)]
        }

        // The next key: the second one is not valid any more.
        var (session, actions) = refused(.unknownKey)
        #expect(actions == [.handshake(attempt: 2, keys[2].key)])
        #expect(session.take(.handshake(attempt: 1, .noAnswer), at: Self.start) == [])
        #expect(session.take(.handshake(attempt: 2, .refused(.unknownKey)), at: Self.start) == ended(.noKey))

        (session, actions) = refused(.badProof)
        #expect(actions == [.readRegistration])
        var gone = session
        #expect(gone.take(.registration(.gone), at: Self.start) == ended(.notRegistered))
        var unreadable = session
        #expect(unreadable.take(.registration(.unreadable), at: Self.start) == ended(.proofRefused))
        #expect(session.take(.registration(.there), at: Self.start) == [.handshake(attempt: 2, keys[0].key)])
        #expect(session.take(.handshake(attempt: 2, .refused(.badProof)), at: Self.start) == ended(.proofRefused))
        #expect(refused(.badProof, .app).1 == ended(.proofRefused))

        (session, actions) = refused(.useNonce)
        #expect(actions == [.handshake(attempt: 2, keys[0].key)])
        #expect(session.take(.handshake(attempt: 2, .refused(.useNonce)), at: Self.start) == ended(.proofRefused))

        for (after, seconds) in [(nil, 2), (0, 1), (-5, 1), (7, 7), (86_400, 30)] as [(Int?, Int)] {
            #expect(refused(.busy, after: after).1 == [.pause(seconds: seconds)])
        }
        (session, actions) = refused(.busy)
        for attempt in 2...4 {
            #expect(session.take(.paused, at: Self.start) == [.handshake(attempt: attempt, keys[0].key)])
            actions = session.take(.handshake(attempt: attempt, .refused(.busy)), at: Self.start)
        }
        #expect(actions == ended(.busy))

        for refusal: PayloadRefusal in [.malformed, .off, .unknownSession, .repeated] {
            #expect(refused(refusal).1 == ended(.noHandshake))
        }
    }

    @Test("Without a reply that the server's key confirms nothing is sent")
    func notConfirmed() {
        for (result, reason) in [(.notConfirmed, .notConfirmed), (.noAnswer, .noHandshake)]
            as [(ClientSession.HandshakeResult, ClientSession.Failure.Reason)]
        {
            var session = fresh()
            _ = session.take(.begin(.init(id: 1, mayRepeat: true)), at: Self.start)
            #expect(session.take(.handshake(attempt: 1, result), at: Self.start) == [gaveUp(1, reason, false)])
            // The next call tries again.
            #expect(
                session.take(.begin(.init(id: 2, mayRepeat: true)), at: Self.start)
                    == [.handshake(attempt: 2, keys[0].key), .wait(2)])
        }
    }

    @Test("One handshake serves all calls that wait, in their order; those after it are sent at once")
    func one() throws {
        var session = fresh()
        #expect(session.take(.begin(.init(id: 1, mayRepeat: true)), at: Self.start).count == 2)
        for id in 2...5 {
            #expect(session.take(.begin(.init(id: id, mayRepeat: true)), at: Self.start) == [.wait(id)])
        }
        #expect(session.take(.cancelled(3), at: Self.start) == [])
        let sent = session.take(.handshake(attempt: 1, .agreed(secrets, expires: 43_200)), at: Self.start)
        #expect(numbers(sent) == [[1, 1, 1], [2, 1, 2], [4, 1, 3], [5, 1, 4]])
        #expect(
            numbers(session.take(.begin(.init(id: 6, mayRepeat: true)), at: Self.start)) == [[6, 1, 5]])
        // Two that the server does not know any more make one handshake.
        #expect(session.take(.answer(1, .unknownSession), at: Self.start).count == 2)
        #expect(session.take(.answer(2, .unknownSession), at: Self.start) == [.repeatAbove(2)])
        _ = session.take(.begin(.init(id: 7, mayRepeat: true)), at: Self.start)
        let again = session.take(.handshake(attempt: 2, .agreed(secrets, expires: 43_200)), at: Self.start)
        #expect(numbers(again) == [[7, 2, 1]])
        // The answer of the old session does not end the new one.
        #expect(session.take(.answer(4, .unknownSession), at: Self.start) == [.repeatAbove(4)])
        #expect(
            numbers(session.take(.begin(.init(id: 8, mayRepeat: true)), at: Self.start)) == [[8, 2, 2]])
    }

    private func numbers(_ actions: [ClientSession.Action]) -> [[Int]] {
        actions.map { action in
            guard case .send(let id, let message) = action else { return [] }
            return [id, message.session, Int(clamping: message.number)]
        }
    }

    @Test("A session ends after its lifetime, after 8 minutes without a call, and when the clock was turned back")
    func expiry() {
        func isSent(after seconds: [TimeInterval], expires: Int64 = 43_200) -> Bool {
            var session = fresh()
            _ = session.take(.begin(.init(id: 0, mayRepeat: true)), at: Self.start)
            _ = session.take(.handshake(attempt: 1, .agreed(secrets, expires: expires)), at: Self.start)
            var actions: [ClientSession.Action] = []
            for (index, seconds) in seconds.enumerated() {
                let now = Self.start.addingTimeInterval(seconds)
                actions = session.take(.begin(.init(id: index + 1, mayRepeat: true)), at: now)
            }
            if case .send? = actions.first { return true }
            return false
        }
        let used = Array(stride(from: 0.0, through: 43_199, by: 400)) + [43_199]
        #expect(isSent(after: [479]) && !isSent(after: [480]) && !isSent(after: [-1]))
        #expect(isSent(after: used) && !isSent(after: used + [43_200]))
        #expect(isSent(after: [59], expires: 60) && !isSent(after: [60], expires: 60))
        // Whatever the server says.
        #expect(!isSent(after: used + [43_200], expires: .max))
    }

    @Test("Keys that the configuration does not have any more end their session, and an attempt with them begins anew")
    func replacedKeys() {
        var session = sent(mayRepeat: true)
        #expect(session.take(.keys([keys[2]]), at: Self.start) == [])
        #expect(
            session.take(.begin(.init(id: 2, mayRepeat: true)), at: Self.start)
                == [.handshake(attempt: 2, keys[2].key), .wait(2)])
        #expect(session.take(.keys([keys[0]]), at: Self.start) == [.handshake(attempt: 3, keys[0].key)])
        #expect(session.take(.handshake(attempt: 2, .agreed(secrets, expires: 60)), at: Self.start) == [])
        #expect(session.take(.keys([keys[1]]), at: Self.start) == [gaveUp(2, .noKey, false)])
        #expect(session.take(.begin(.init(id: 3, mayRepeat: true)), at: Self.start) == [gaveUp(3, .noKey, false)])
        // A key that the server took is tried first from then on.
        var other = fresh()
        _ = other.take(.begin(.init(id: 1, mayRepeat: true)), at: Self.start)
        _ = other.take(.handshake(attempt: 1, .refused(.unknownKey)), at: Self.start)
        _ = other.take(.handshake(attempt: 2, .agreed(secrets, expires: 60)), at: Self.start)
        #expect(
            other.take(.answer(1, .unknownSession), at: Self.start)
                == [.handshake(attempt: 3, keys[2].key), .repeatAbove(1)])
    }

    @Test("Not more than 1,024 calls wait, and a wait for nobody makes no handshake")
    func bounds() {
        var session = fresh()
        for id in 0..<ClientSession.waitingLimit {
            _ = session.take(.begin(.init(id: id, mayRepeat: true)), at: Self.start)
        }
        #expect(
            session.take(.begin(.init(id: 5_000, mayRepeat: true)), at: Self.start) == [gaveUp(5_000, .tooMany, false)])
        for id in 0..<ClientSession.waitingLimit { _ = session.take(.cancelled(id), at: Self.start) }
        _ = session.take(.handshake(attempt: 1, .refused(.busy)), at: Self.start)
        #expect(session.take(.paused, at: Self.start) == [])
        #expect(session.pending == 0)
    }

    @Test("A message opens the reply to itself alone")
    func messages() throws {
        var session = sent(mayRepeat: true)
        guard case .send(2, let message)? = session.take(.begin(.init(id: 2, mayRepeat: true)), at: Self.start).first
        else {
            Issue.record("It is not sent.")
            return
        }
        let server = try PayloadVectors.server()
        var sealer = message.sealer(random: SystemRandom())
        let frame = try sealer.seal([1]) + sealer.finish()
        #expect(try server.opened(frame, as: .request) == [1])
        let request = sealer.head
        #expect(request.number == 2)
        let reply = FrameHead(.reply, session: server.session, number: 2, random: SystemRandom())
        let answer = try server.sealed(reply, [2], bound: request.binding)
        var opener = try message.opener(reply, to: request)
        #expect(try opener.open(answer.dropFirst(FrameHead.length)) == [2])
        for head in [
            FrameHead(.reply, session: server.session, number: 1, random: SystemRandom()),
            FrameHead(.reply, session: SystemRandom().bytes(16), number: 2, random: SystemRandom()), request,
        ] {
            #expect(throws: PayloadError.foreignFrame) { try message.opener(head, to: request) }
        }
    }
}
