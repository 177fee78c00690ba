import AssentAuthorization
import AssentCore
import HTTPTypes

/// What has come of a reply, in memory or in the file of a download.
struct ReplyIntake: Sendable {
    private(set) var head: HTTPResponse?
    /// Whether the user was asked for it.
    var authorization = ReplyAuthorization.notAsked
    /// Bytes of the content.
    private(set) var count = 0
    /// All bytes of the content, if the server said so.
    private(set) var total: Int?
    private var bytes: [UInt8] = []
    private var isStored = false
    private let file: DownloadFile?
    private let path: String?
    private let maximumStored: Int
    /// Of a reply whose content is not stored.
    private let maximumInMemory: Int

    /// - Throws: ``ResourceError``: `cannotCreateFile`.
    init(
        _ download: ResourceDownload?, upTo maximumInMemory: Int = ResourceCalls.limits.replyBytes,
        random: any RandomSource
    ) throws(ResourceError) {
        path = download?.path
        self.maximumInMemory = maximumInMemory
        maximumStored = download?.maximumBytes ?? 0
        if let download { file = try DownloadFile(at: download.path, random: random) } else { file = nil }
    }

    /// Whether some of the content is in the file.
    var hasStored: Bool { isStored && count > 0 }

    /// A reply begins.
    ///
    /// - Parameters:
    ///   - response: its header.
    ///   - length: the bytes of its content, if they are known.
    ///   - isRest: whether it was asked for what follows after ``count`` bytes.
    ///   - asksForPart: whether the app itself has asked for a part.
    /// - Throws: ``ResourceError``: `badServerResponse` for a part that does not belong to what is there;
    ///   `HTTPTransportError` for more bytes than are accepted.
    mutating func begin(
        _ response: HTTPResponse, length: Int?, isRest: Bool, asksForPart: Bool
    ) throws {
        if response.status == .partialContent, isRest {
            let isSame = response.headerFields[.eTag].map { $0 == head?.strongETag } ?? true
            guard isSame, let part = ContentPart(response.headerFields[.contentRange]), part.first == count,
                part.last == part.total - 1, total ?? part.total == part.total
            else { throw Self.otherPart }
            // A first reply without a length has bounded nothing, and the app is told this number.
            guard part.total <= limit else { throw Self.tooLong }
            total = part.total
            return
        }
        guard response.status != .partialContent || asksForPart || file == nil else { throw Self.otherPart }
        head = response
        (count, total, bytes) = (0, length, [])
        isStored = file != nil && response.status.kind == .successful
        guard length ?? 0 <= limit else { throw Self.tooLong }
        try file?.startOver()
    }

    /// Bytes have come, or the end.
    ///
    /// - Returns: whether there may be more.
    mutating func add(_ chunk: [UInt8]?) throws -> Bool {
        guard let chunk else { return false }
        guard chunk.count <= limit - count else { throw Self.tooLong }
        if isStored {
            try file?.write(chunk)
        } else if bytes.isEmpty {
            // Mostly all of it is one piece, which need not be copied.
            bytes = chunk
        } else {
            bytes += chunk
        }
        count += chunk.count
        return true
    }

    private var limit: Int { isStored ? maximumStored : maximumInMemory }

    /// How much has come.
    var progress: NetworkProgress {
        var progress = NetworkProgress()
        (progress.receivedBytes, progress.bytesToReceive) = (count, total)
        return progress
    }

    /// The reply is complete.
    func finish() throws(ResourceError) -> ResourceResponse? {
        guard let head else { return nil }
        if isStored {
            guard total ?? count == count else { throw Self.otherPart }
            try file?.commit()
        } else {
            file?.discard()
        }
        return ResourceResponse(head, data: bytes, file: isStored ? path : nil, authorization)
    }

    /// What is known of a reply that did not come to its end; `nil` when nothing is.
    var known: ResourceResponse? { head.map { ResourceResponse($0, data: bytes, file: nil, authorization) } }

    static var tooLong: HTTPTransportError {
        HTTPTransportError(.bodyTooLarge, "The reply has more bytes than are accepted.").afterSending()
    }

    static var noReply: ResourceError { ResourceError(.url, .badServerResponse, "There is no reply.") }

    private static var otherPart: ResourceError {
        ResourceError(.url, .badServerResponse, "The server sent another part of the content than was asked for.")
    }
}
