import ArgumentParser
import AssentCore
import Foundation

/// Reads a secret from a file or a descriptor: never from the command line, which other users can read.
enum SecretSource {
    /// The most bytes of a passphrase or PIN.
    static let limit = 1_024

    /// The secret in `file` or behind `descriptor` without the line's end; `nil` when neither is named.
    ///
    /// With `isPrivate` other users may neither read nor change the file.
    ///
    /// - Throws: ``CommandFailure`` when it cannot be read, is empty, has more than `limit` bytes or is not private;
    ///   `ValidationError` when both are named.
    static func read(
        file: String?, descriptor: Int32?, _ what: String, limit: Int = SecretSource.limit, isPrivate: Bool = false
    ) throws -> Secret? {
        if file != nil, descriptor != nil {
            throw ValidationError("Name a file or a descriptor for \(what), not both.")
        }
        if let file {
            let handle: FileHandle
            do {
                handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: file))
            } catch {
                throw CommandFailure.unreadable(file, error, "Name a file that has \(what) in it.")
            }
            if isPrivate { try TrustText.checkPrivate(handle, file) }
            return try read(handle, from: file, what, limit)
        }
        guard let descriptor else { return nil }
        return try read(
            FileHandle(fileDescriptor: descriptor, closeOnDealloc: false), from: "descriptor \(descriptor)", what,
            limit)
    }

    private static func read(
        _ handle: FileHandle, from source: String, _ what: String, _ limit: Int
    ) throws -> Secret {
        var data = Data()
        do {
            while data.count <= limit + 2, let more = try handle.read(upToCount: limit + 3 - data.count), !more.isEmpty
            {
                data += more
            }
        } catch {
            throw CommandFailure.unreadable(source, error, "Name one that has \(what) in it.")
        }
        if data.last == 0x0A { data.removeLast() }
        if data.last == 0x0D { data.removeLast() }
        guard (1...limit).contains(data.count) else {
            throw CommandFailure("\(source) must have \(what) in it: one line of 1 to \(limit) bytes.")
        }
        defer { data.resetBytes(in: data.startIndex..<data.endIndex) }
        return Secret(bytes: data)
    }
}

/// Answers with a secret that came from a file or descriptor, or asks at the terminal.
struct TerminalPresence: UserPresence {
    /// The secret that is known beforehand.
    let known: Secret?

    /// The options that give it, for when nobody can be asked.
    var options = "--passphrase-file or --passphrase-fd"

    var prompt = Prompt()

    func secret(for request: PresenceRequest) async throws -> Secret {
        if let known { return try await KnownSecret(known).secret(for: request) }
        let provider = DisplayText.escapedForTerminal(request.providerName)
        let left = request.attemptsLeft.map { ", \($0) tries left" } ?? ""
        do {
            switch request.kind {
            case .pin: return try prompt.secret("\(retry(request))PIN of \(provider)\(left)")
            case .passphrase: return try prompt.secret("\(retry(request))Passphrase of the vault\(left)")
            case .newPassphrase: return try chosen("New passphrase of the vault")
            case .newPIN: return try chosen("New PIN for this vault's keys in \(provider)")
            }
        } catch let error as Prompt.NoTerminal {
            throw KeyProviderError(.userAbsent, "\(error)", suggestion: "Give it with \(options).")
        }
    }

    private func chosen(_ question: String) throws -> Secret {
        let chosen = try prompt.secret(question)
        guard try prompt.secret("The same again") == chosen else {
            throw KeyProviderError(.userAbsent, "The two differ. Nothing was changed; try again.")
        }
        return chosen
    }

    private func retry(_ request: PresenceRequest) -> String { request.isRetry ? "Wrong. " : "" }
}
