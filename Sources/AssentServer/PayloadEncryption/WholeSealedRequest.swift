import AssentCore
import AssentEngine
import AssentPayload
import HTTPTypes
import Hummingbird
import NIOCore

/// A sealed request that is so short that it is read whole before anything is done for it, as nearly all are. Nobody
/// reads it later, so it needs no ``SealedRequest``, of which each step is a turn of the event loop.
struct WholeSealedRequest {
    /// The most bytes of one.
    static let limit = 32_768

    /// What it has led to.
    let beginning: SealedRequest.Beginning

    /// Its content; empty unless the handler is to be called.
    let content: [UInt8]

    /// Reads a body to its end, and does what ``/AssentPayload/ServerMessage`` says.
    ///
    /// - Parameters:
    ///   - body: the request's.
    ///   - origin: the listener's.
    ///   - sessions: where the session is.
    /// - Throws: ``StoreError`` when the session cannot be looked up.
    init(_ body: RequestBody, at origin: Origin, sessions: PayloadSessions) async throws {
        let bytes: ByteBuffer
        do {
            bytes = try await body.collect(upTo: Self.limit)
        } catch let error as CancellationError {
            throw error
        } catch {
            (beginning, content) = (.refused(.malformed), [])
            return
        }
        var message = ServerMessage(origin: origin)
        let first = bytes.withUnsafeReadableBytes { message.take(bytes: $0) }
        var waiting = first[...]
        waiting += message.take(.end)
        let name = origin.description
        var (call, head, reply): (HTTPRequest?, FrameHead?, SealedReply?) = (nil, nil, nil)
        var (read, isFinished): ([UInt8], Bool) = ([], false)
        var refused: SealedRequest.Beginning?
        while refused == nil, let action = waiting.popFirst() {
            switch action {
            case .lookUp(let found):
                head = found
                let event = try await sessions.opening(found, origin: name)
                waiting += message.take(event)
            case .claim:
                let (event, sealed) = sessions.claiming(head)
                reply = sealed
                waiting += message.take(event)
            case .call(let request): call = request
            case .content(let bytes): read.join(bytes)
            case .finish: isFinished = true
            case .refuse(let refusal): refused = .refused(refusal)
            case .reply(let refusal):
                refused = reply.map { SealedRequest.Beginning.unacceptable(refusal, $0) } ?? .refused(.malformed)
            case .abort: refused = .refused(.malformed)
            }
        }
        guard refused == nil, isFinished, let call, let head, let reply else {
            (beginning, content) = (refused ?? .refused(.malformed), [])
            return
        }
        (beginning, content) = (.call(call, hasContent: !read.isEmpty, head, reply), read)
    }
}
