import AssentCore
import AssentEngine
import AssentPayload
import HTTPTypes
import Hummingbird
import NIOCore

/// A sealed request that is damaged, cut off or longer than its end, after the handler was called.
struct SealedRequestDamage: Error {}

/// Reads a sealed request as the handler takes its content, so that what is not taken is not read either: it does what
/// ``/AssentPayload/ServerMessage`` says.
actor SealedRequest {
    /// What the first bytes have led to.
    enum Beginning: Sendable {
        /// Nothing was called, and the answer is not sealed.
        case refused(PayloadRefusal)
        /// Nothing was called, and the answer is sealed.
        case unacceptable(ContentRefusal, SealedReply)
        /// The handler is to be called.
        case call(HTTPRequest, hasContent: Bool, FrameHead, SealedReply)
    }

    private let sessions: PayloadSessions
    private let origin: String
    private var message: ServerMessage
    private var iterator: RequestBody.AsyncIterator
    private var head: FrameHead?
    private var reply: SealedReply?
    /// What was read and the handler has not got. Tiny pieces are handed on together: each would cost it a turn.
    private var content: [UInt8] = []
    private var isFinished = false
    /// What is left of the length that the request says; `nil` when it says none.
    private var left: Int?
    /// How many bytes of the message are still to come; `nil` where nothing says it.
    private var missing: Int?

    /// Whether the handler has got content that did not end as it should.
    private(set) var isDamaged = false

    /// - Parameters:
    ///   - iterator: of the request's body.
    ///   - origin: the listener's.
    ///   - sessions: where the session is.
    ///   - length: how long the request's body is, where HTTP says it.
    init(
        _ iterator: sending RequestBody.AsyncIterator, at origin: Origin, sessions: PayloadSessions,
        length: Int? = nil
    ) {
        self.iterator = iterator
        missing = length
        self.sessions = sessions
        self.origin = origin.description
        message = ServerMessage(origin: origin)
    }

    /// Reads until the first content is there, or all of a request without content: so nothing is called for a
    /// request that was cut off before that.
    ///
    /// - Throws: ``StoreError`` when the session cannot be looked up.
    func begin() async throws -> Beginning {
        var call: HTTPRequest?
        while true {
            let actions: [ServerMessage.Action]
            do {
                actions = try await read()
            } catch is BodyFault {
                return .refused(.malformed)
            }
            for action in actions {
                switch action {
                case .refuse(let refusal): return .refused(refusal)
                case .reply(let refusal):
                    guard let reply else { return .refused(.malformed) }
                    return .unacceptable(refusal, reply)
                case .abort: return .refused(.malformed)
                case .call(let request):
                    call = request
                    left = request.headerFields[.contentLength].flatMap(Int.init)
                case .content(let bytes): content.join(bytes)
                case .finish: isFinished = true
                case .lookUp, .claim: break
                }
            }
            guard let call, let head, let reply, isFinished || !content.isEmpty else { continue }
            return .call(call, hasContent: !content.isEmpty, head, reply)
        }
    }

    /// The next bytes of the content; `nil` at its end. What completes the length that the request says is handed on
    /// only when the message has ended as it should.
    ///
    /// - Throws: ``SealedRequestDamage``, and why the body could not be read.
    func next() async throws -> ByteBuffer? {
        while true {
            guard !isDamaged else { throw SealedRequestDamage() }
            if !content.isEmpty, isFinished || left.map({ $0 > content.count }) ?? true {
                left = left.map { max(0, $0 - content.count) }
                defer { content = [] }
                return ByteBuffer(bytes: content)
            }
            if isFinished { return nil }
            let actions: [ServerMessage.Action]
            do {
                actions = try await read()
            } catch let fault as BodyFault {
                // What is late is answered as it is for a plain request.
                isDamaged = !(fault.reason is BodyTimeout)
                throw fault.reason
            }
            for action in actions {
                switch action {
                case .content(let bytes): content.join(bytes)
                case .finish: isFinished = true
                case .refuse, .reply, .abort: isDamaged = true
                case .call, .lookUp, .claim: break
                }
            }
        }
    }

    /// The body cannot be read.
    private struct BodyFault: Error {
        let reason: any Error
    }

    /// The next bytes of the body; `nil` at its end.
    private func nextBuffer() async throws -> ByteBuffer? {
        // All of it is there, and HTTP lets nothing come behind it: to wait for the end as well would cost two turns of
        // the event loop.
        if missing == 0 { return nil }
        var current = iterator
        let buffer: ByteBuffer?
        do {
            buffer = try await current.next(isolation: self)
        } catch let error as CancellationError {
            iterator = current
            throw error
        } catch {
            iterator = current
            throw BodyFault(reason: error)
        }
        iterator = current
        let count = buffer?.readableBytes ?? 0
        missing = missing.map { max(0, $0 - count) }
        return buffer
    }

    /// Takes the next bytes, and what is to be looked up and claimed for them.
    private func read() async throws -> [ServerMessage.Action] {
        let buffer = try await nextBuffer()
        // A slice, of which the first is taken without moving the others: there may be as many as bytes.
        var waiting = take(buffer)[...]
        var actions: [ServerMessage.Action] = []
        while let action = waiting.popFirst() {
            switch action {
            case .lookUp(let head):
                self.head = head
                waiting += message.take(try await sessions.opening(head, origin: origin))
            case .claim:
                let (event, sealed) = sessions.claiming(head)
                reply = sealed
                waiting += message.take(event)
            default: actions.append(action)
            }
        }
        return actions
    }

    /// Bytes of the body, which are opened where they lie, or its end.
    private func take(_ buffer: ByteBuffer?) -> [ServerMessage.Action] {
        guard let buffer else { return message.take(.end) }
        return buffer.withUnsafeReadableBytes { message.take(bytes: $0) }
    }
}

extension PayloadSessions {
    /// Looks up the session of a message, and says so as ``/AssentPayload/ServerMessage`` hears of it.
    ///
    /// - Throws: ``StoreError``.
    func opening(_ head: FrameHead, origin: String) async throws -> ServerMessage.Event {
        do {
            return .opener(try await opener(head, origin: origin))
        } catch let refusal as PayloadRefusal {
            return .refused(refusal)
        }
    }

    /// Claims the number of a message in the same way. What seals its reply comes with it.
    func claiming(_ head: FrameHead?) -> (ServerMessage.Event, SealedReply?) {
        guard let head else { return (.refused(.malformed), nil) }
        do {
            return (.claimed, SealedReply(try claim(head), RunningMessage(head, in: self)))
        } catch {
            return (.refused(error), nil)
        }
    }
}

/// Keeps a session from being idle until nothing needs this value any more.
final class RunningMessage: Sendable {
    private let head: FrameHead
    private let sessions: PayloadSessions

    init(_ head: FrameHead, in sessions: PayloadSessions) { (self.head, self.sessions) = (head, sessions) }

    deinit { sessions.end(head) }
}

extension RequestBody {
    /// The content of a sealed request.
    init(_ request: SealedRequest) { self.init(asyncSequence: SealedContent(request: request)) }

    private struct SealedContent: AsyncSequence, Sendable {
        let request: SealedRequest

        struct AsyncIterator: AsyncIteratorProtocol {
            let request: SealedRequest

            mutating func next() async throws -> ByteBuffer? { try await request.next() }
        }

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(request: request) }
    }
}
