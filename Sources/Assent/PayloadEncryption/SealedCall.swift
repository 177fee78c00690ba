import AssentCore
import AssentPayload
import HTTPTypes

/// A call that is to be sealed, checked as a plain one is.
struct SealedCall {
    private let call: HTTPCall
    private let inner: HTTPRequest

    /// Content up to this size is sealed in one piece before it is sent.
    private static let joined = 64 << 10
    private static let mediaType = "application/assent-pe"

    /// - Throws: `HTTPTransportError` with code `invalidRequest`.
    init(_ call: HTTPCall, at origin: Origin) throws(HTTPTransportError) {
        guard call.request.method != .connect, call.request.extendedConnectProtocol == nil else {
            throw HTTPTransportError(.invalidRequest, "CONNECT is not supported.")
        }
        inner = try Self.inner(of: call, at: origin)
        guard ContentRules.refusal(of: inner, at: origin) == nil else {
            throw HTTPTransportError(.invalidRequest, "A request like this cannot be sealed.")
        }
        self.call = call
    }

    /// The request that is sealed. Most of those without content stand in the call as they are sealed, and are not put
    /// together once more.
    private static func inner(of call: HTTPCall, at origin: Origin) throws(HTTPTransportError) -> HTTPRequest {
        let request = call.request
        let path = try RequestRules.target(request.path)
        if RequestRules.sendsFieldsAsGiven(call), request.path?.hasSameBytes(as: path) == true,
            request.scheme?.hasSameBytes(as: origin.scheme) == true,
            request.authority?.hasSameBytes(as: origin.authority) == true
        {
            try RequestRules.forEachField(of: call) { _, _ in }
            return request
        }
        var fields = HTTPFields()
        fields.reserveCapacity(request.headerFields.count + 1)
        try RequestRules.forEachField(of: call) { name, value in fields.append(HTTPField(name: name, value: value)) }
        if let length = RequestRules.declaredLength(of: call) { fields[.contentLength] = String(length) }
        return HTTPRequest(
            method: request.method, scheme: origin.scheme, authority: origin.authority, path: path,
            headerFields: fields)
    }

    /// What carries the sealed calls to an origin, without their content: it is the same for all of them.
    ///
    /// - Throws: `WireError`, see `HTTPCall`.
    static func carrier(to origin: Origin) throws(WireError) -> HTTPCall {
        try HTTPCall(.post, url: "\(origin)\(ContentRules.root)/1/message", headerFields: [.contentType: mediaType])
    }

    /// The call that carries this one, as ``carrier(to:)``, and the head that its reply is bound to.
    ///
    /// - Parameters:
    ///   - sealer: seals it.
    ///   - carrier: what carries it.
    ///   - isReplacedAbove: whether another message is sent where a kept connection turns out to have ended.
    /// - Returns: the call, and the head of its frame.
    /// - Throws: `HTTPTransportError` with code `invalidRequest`.
    func sealed(
        _ sealer: FrameSealer, in carrier: HTTPCall, isReplacedAbove: Bool
    ) throws -> (call: HTTPCall, head: FrameHead) {
        do {
            var outer = carrier
            outer.body = try body(sealer)
            outer.limits = call.limits
            // What is padded and sealed is longer: the content is counted when it is opened.
            outer.limits.replyBytes = .max
            // A message's number is used once.
            outer.isSentOnce = true
            outer.isReplacedAbove = isReplacedAbove
            outer.control = call.control
            return (outer, sealer.head)
        } catch is PayloadError {
            throw HTTPTransportError(.invalidRequest, "The request cannot be sealed.")
        }
    }

    private func body(_ sealer: FrameSealer) throws -> HTTPBody {
        let content = call.body ?? .empty
        if let bytes = content.inMemory, bytes.count <= Self.joined {
            var plaintext = try BinaryHTTPWriter.request(inner, content: bytes)
            Padding.pad(&plaintext)
            var sealer = sealer
            return HTTPBody(try sealer.finish(with: plaintext))
        }
        let upload = SealedUpload(
            content.reading(), length: content.length, sealer,
            head: try content.length.map { try BinaryHTTPWriter.head(inner, contentLength: $0) }
                ?? BinaryHTTPWriter.head(inner))
        return HTTPBody(length: upload.sealedLength, isReplayable: false) { { try await upload.next() } }
    }

    static func isSealed(_ response: HTTPResponse) -> Bool {
        guard response.status.code == 200 else { return false }
        // The usual form needs no joining of fields, and no reading.
        if response.headerFields[values: .contentType] == [mediaType] { return true }
        return response.headerFields[.contentType].map(MediaType.normalised) == mediaType
    }
}

/// Seals a content as it is pulled: nothing of it is kept but one chunk.
final class SealedUpload: Sendable {
    private enum Phase {
        case head([UInt8])
        case content
        case padding(left: Int)
        case done
    }

    private struct State {
        var phase: Phase
        var sealer: FrameSealer
        /// The bytes of plaintext so far, without padding.
        var plaintext = 0
        /// The bytes of content so far.
        var content = 0
    }

    private let state: Locked<State>
    private let pull: @Sendable () async throws -> [UInt8]?
    private let length: Int?
    /// The bytes of the whole message; `nil` when the content's length is not known.
    let sealedLength: Int?

    private static let piece = 64 << 10

    init(
        _ pull: @escaping @Sendable () async throws -> [UInt8]?, length: Int?, _ sealer: FrameSealer, head: [UInt8]
    ) {
        (self.pull, self.length) = (pull, length)
        sealedLength = length.map { length in
            FrameSealer.messageLength(
                Padding.length(of: head.count + length + BinaryHTTPWriter.knownEnd.count))
        }
        state = Locked(State(phase: .head(head), sealer: sealer))
    }

    /// The next sealed bytes; `nil` at the end.
    func next() async throws -> [UInt8]? {
        while true {
            let phase = state.withLock { $0.phase }
            let sealed: [UInt8]
            switch phase {
            case .head(let head): sealed = try seal(head, then: .content)
            case .content:
                if let piece = try await pull() { sealed = try seal(content: piece) } else { sealed = try end() }
            case .padding(let left): sealed = try seal(padding: left)
            case .done: return nil
            }
            if !sealed.isEmpty { return sealed }
        }
    }

    private func seal(_ bytes: [UInt8], then phase: Phase) throws -> [UInt8] {
        try locked { state throws(PayloadError) in
            state.plaintext += bytes.count
            state.phase = phase
            return try state.sealer.seal(bytes)
        }
    }

    private func seal(content piece: [UInt8]) throws -> [UInt8] {
        let isKnown = length != nil
        let (count, limit) = (piece.count, length ?? .max)
        guard state.withLock({ $0.content <= limit - count }) else {
            throw HTTPTransportError(.bodyFailed, "The request's content is longer than its declared length.")
        }
        let bytes = isKnown ? piece : BinaryHTTPWriter.piece(piece)
        return try locked { state throws(PayloadError) in
            state.content += count
            state.plaintext += bytes.count
            var sealed = try state.sealer.seal(bytes)
            // Nobody knows when more comes of a stream: the server gets what there is.
            if !isKnown { sealed.join(try state.sealer.flush()) }
            return sealed
        }
    }

    private func end() throws -> [UInt8] {
        let content = state.withLock { $0.content }
        if let length, content != length {
            throw HTTPTransportError(.bodyFailed, "The request's content is shorter than its declared length.")
        }
        let end = length == nil ? BinaryHTTPWriter.end : BinaryHTTPWriter.knownEnd
        return try locked { state throws(PayloadError) in
            state.plaintext += end.count
            state.phase = .padding(left: Padding.length(of: state.plaintext) - state.plaintext)
            return try state.sealer.seal(end)
        }
    }

    private func seal(padding left: Int) throws -> [UInt8] {
        try locked { state throws(PayloadError) in
            let count = min(left, Self.piece)
            let sealed = try state.sealer.seal([UInt8](repeating: 0, count: count))
            guard count == left else {
                state.phase = .padding(left: left - count)
                return sealed
            }
            state.phase = .done
            return try sealed + state.sealer.finish()
        }
    }

    private func locked(
        _ body: (inout State) throws(PayloadError) -> [UInt8]
    ) throws(HTTPTransportError) -> [UInt8] {
        let result = state.withLock { state -> Swift.Result<[UInt8], PayloadError> in
            do throws(PayloadError) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        guard case .success(let sealed) = result else {
            throw HTTPTransportError(.bodyFailed, "The request's content cannot be sealed.")
        }
        return sealed
    }
}
