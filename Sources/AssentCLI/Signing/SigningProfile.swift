import Assent
import AssentSigning
import Foundation
import Logging

/// The signing device of a profile: its containers in a vault of its own, its keys where the user chose.
struct SigningProfile: Sendable {
    let device: SigningDevice

    /// The issuer of the profile's server and realm.
    let issuer: String

    private let shutdown: @Sendable () async -> Void

    /// Opens the device, and makes its vault when it is missing.
    ///
    /// - Throws: what the profile, the vault and the key provider throw.
    static func open(_ client: ClientOptions, keys options: DeviceKeyOptions? = nil) async throws -> SigningProfile {
        let profile = try client.load()
        let store = try await DeviceStore.open(profile, choosing: options)
        let logger = Logger.ofClient()
        let (transport, shutdown) = try network(profile, logger)
        return SigningProfile(
            device: SigningDevice(
                store: store.vault, keys: store.keys, transport: transport, configuration: DeviceStore.configuration,
                logger: logger),
            issuer: try profile.file.signingIssuer, shutdown: shutdown)
    }

    /// The pinned transport. With a trust file it is the profile's own, whose vault has the newest version.
    private static func network(
        _ profile: ClientProfile, _ logger: Logger
    ) throws -> (any HTTPTransport, shutdown: @Sendable () async -> Void) {
        guard profile.file.trust == nil else {
            let assent = try profile.assent()
            return (assent.transport, { await assent.shutdown() })
        }
        let configuration = profile.file.configuration(vault: .memory)
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(trustRoots: configuration.trustRoots, pins: configuration.pins)
                .withLeastLimit(configuration.leastLimit), logger: logger)
        return (transport, { await transport.shutdown() })
    }

    /// The container with this id; without one, the only one that there is.
    func container(_ id: String?) async throws -> SigningContainer {
        let all = try await containers(id)
        guard let only = all.first, all.count == 1 else {
            let list = all.map { "\($0.id) (\($0.name), \($0.userName))" }.joined(separator: ", ")
            throw CommandFailure("There are several containers; name one with --container: \(list)")
        }
        return only
    }

    /// Runs `work` and closes what was opened.
    static func run(
        _ client: ClientOptions, _ console: Console, keys: DeviceKeyOptions? = nil,
        _ work: (SigningProfile) async throws -> Void
    ) async throws {
        try await Outcome.run(console, reportsErrors: true) {
            let profile = try await open(client, keys: keys)
            do {
                try await work(profile)
            } catch {
                await profile.shutdown()
                throw error
            }
            await profile.shutdown()
        }
    }
}

extension SigningProfile {
    /// Sends what could not be sent before. Where that fails, says so once, and goes on: the next command tries again.
    ///
    /// - Returns: the receipts of decisions whose outcome was not known.
    @discardableResult
    func sendQueued(_ console: Console) async -> [SigningReceipt] {
        var receipts: [SigningReceipt] = []
        do {
            try await device.sendQueued {
                receipts.append($0)
            } onRefusal: {
                console.warn(Self.line($0))
            }
        } catch let error as SigningError where error.transactionID != nil {
            // It was told.
        } catch let error as SigningError where !error.isTransient {
            console.warn(
                DisplayText.escapedForTerminal(
                    "The server refuses a call that an earlier command could not send: \(error.detail) [\(error.code)]")
            )
        } catch let error as any AssentError {
            console.warn(
                DisplayText.escapedForTerminal(
                    "A call that an earlier command could not send failed again, and the next command sends it: "
                        + "\(error.detail) [\(error.code)]"))
        } catch {
            console.warn("A call that an earlier command could not send failed again, and the next command sends it.")
        }
        return receipts
    }

    /// What is said of a decision that the server has refused.
    private static func line(_ refusal: SigningError) -> String {
        let outcome =
            refusal.code.endsTransaction ? "was not accepted" : "is not sent again, and may have been accepted"
        let transaction = refusal.transactionID ?? ""
        return DisplayText.escapedForTerminal(
            "Your answer to transaction \(transaction) \(outcome): \(refusal.detail) [\(refusal.code)]")
    }

    /// Has a decision signed and sent, and finds out what became of it where the answer is lost. What it hears of other
    /// decisions meanwhile is said, since it is heard once.
    ///
    /// - Throws: what ``LostReceipt/receipt(of:_:)`` throws, and ``CommandFailure`` when an earlier answer stands.
    func outcome(
        of transaction: String, to effect: DecisionEffect, _ console: Console,
        _ decide: () async throws -> SigningReceipt
    ) async throws -> SigningReceipt {
        let lost = LostReceipt<SigningReceipt>(
            isKept: { try await device.unreceiptedTransactions().contains(transaction) },
            ask: {
                var found: SigningReceipt?
                var refusal: SigningError?
                // What else could not be sent is for the next command.
                try? await device.sendQueued {
                    if $0.transactionID == transaction { found = $0 } else { console.warn($0.line) }
                } onRefusal: {
                    if $0.transactionID == transaction { refusal = $0 } else { console.warn(Self.line($0)) }
                }
                if let refusal { throw refusal }
                return found
            },
            check: {
                guard $0.effect != effect else { return }
                $0.show(on: console)
                throw CommandFailure.answered($0.transactionID)
            }, pause: { try await Task.sleep(for: .seconds(2)) })
        return try await lost.receipt(of: transaction, decide)
    }

    /// Shows a transaction, asks for an answer, and has it signed and sent.
    ///
    /// - Throws: as ``outcome(of:to:_:_:)``.
    func answer(_ transaction: SigningTransaction, _ console: Console) async throws -> SigningReceipt {
        let decision = TerminalDecision(console: console)
        let status = try decision.choose(transaction)
        return try await outcome(of: transaction.id, to: status.effect, console) {
            try await decision.sign(transaction, status)
        }
    }
}

extension CommandFailure {
    /// The user has answered a transaction before, and otherwise.
    static func answered(_ transaction: String) -> CommandFailure {
        CommandFailure("You answered transaction \(transaction) before, and that answer stands.", status: .refused)
    }
}
