#if TPM && os(Linux)
import AssentCore
import CTSS2
import Foundation

/// A connection with a TPM for one operation, with the storage root key loaded and a session under way.
///
/// The session is salted with the storage root key and encrypts what goes over the wire in both directions
/// (AES-128-CFB), and PINs go into HMACs only: who listens on the bus learns neither PINs nor shared secrets. What it
/// made in the TPM is flushed when it is released, since a TPM has room for three objects. Touched only on its
/// provider's thread.
final class TPMConnection {
    private var transport: OpaquePointer?
    private let context: OpaquePointer
    private var loaded: [ESYS_TR] = []
    private(set) var root: ESYS_TR = ESYS_TR_NONE
    /// The name (Part 1 §16) of the storage root key, which another TPM does not have.
    private(set) var rootName: [UInt8] = []
    private var session: ESYS_TR = ESYS_TR_NONE

    /// Connects only; `tcti` is as tpm2-tools take it, for example `device:/dev/tpmrm0`.
    private init(connecting tcti: String) throws {
        var transport: OpaquePointer?
        let result = Tss2_TctiLdr_Initialize(tcti, &transport)
        guard result == 0, let opened = transport else {
            throw KeyProviderError(
                .unavailable,
                "There is no TPM at \(tcti) (code 0x\(String(result, radix: 16))). Switch it on in the firmware, let this "
                    + "user open it (group tss), or correct its name.")
        }
        self.transport = opened
        var context: OpaquePointer?
        let initialized = Esys_Initialize(&context, opened, nil)
        guard initialized == 0, let made = context else {
            Tss2_TctiLdr_Finalize(&transport)
            throw TPMFailure(code: initialized, action: "starting").error
        }
        self.context = made
    }

    /// Connects, makes the storage root key (or takes the persistent one), and starts the session.
    convenience init(_ tcti: String, parent: TPMParent) throws {
        try self.init(connecting: tcti)
        switch parent {
        case .ownerHierarchy: try makeRoot()
        case .persistent(let handle):
            do {
                try check(
                    "finding the storage root key",
                    Esys_TR_FromTPMPublic(context, handle, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &root))
            } catch let failure as TPMFailure where failure.response == TPMFailure.Response.handle {
                throw KeyProviderError(
                    .unavailable,
                    "The TPM has no persistent key with this handle. See them: tpm2_getcap handles-persistent.")
            }
        }
        var name: UnsafeMutablePointer<TPM2B_NAME>?
        try check("reading the storage root key's name", Esys_TR_GetName(context, root, &name))
        rootName = try take(name) { TPMBytes.get($0.name, $0.size) }
        var symmetric = TPMT_SYM_DEF()
        symmetric.algorithm = TPMNumber.algorithmAES
        symmetric.keyBits.aes = 128
        symmetric.mode.aes = TPMNumber.algorithmCFB
        try check(
            "starting a session",
            Esys_StartAuthSession(
                context, root, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, nil, TPMNumber.sessionHMAC,
                &symmetric, TPMNumber.algorithmSHA256, &session))
        loaded.append(session)
    }

    deinit {
        for object in loaded.reversed() { Esys_FlushContext(context, object) }
        var context: OpaquePointer? = context
        Esys_Finalize(&context)
        Tss2_TctiLdr_Finalize(&transport)
    }

    private func makeRoot() throws {
        var template = TPM2B_PUBLIC.storageRoot
        var sensitive = TPM2B_SENSITIVE_CREATE()
        var outside = TPM2B_DATA()
        var registers = TPML_PCR_SELECTION()
        do {
            try check(
                "making the storage root key",
                Esys_CreatePrimary(
                    context, ESYS_TR_RH_OWNER, 0xFF, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive, &template, &outside,
                    &registers, &root, nil, nil, nil, nil))
        } catch let failure as TPMFailure where failure.error.code == .wrongSecret {
            throw KeyProviderError(
                .unsupported,
                "The TPM's owner hierarchy has a password. Let the owner make a persistent storage key "
                    + "(tpm2_createprimary, tpm2_evictcontrol), and name its handle.")
        }
        loaded.append(root)
    }

    /// What the TPM says of wrong tries.
    func lockout() throws -> (tries: UInt32, limit: UInt32, interval: UInt32) {
        var values = [TPMNumber.propertyLockoutCounter: UInt32(0)]
        var more: TPMI_YES_NO = 0
        var data: UnsafeMutablePointer<TPMS_CAPABILITY_DATA>?
        try check(
            "asking for the TPM's state",
            Esys_GetCapability(
                context, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, TPMNumber.capabilityProperties,
                TPMNumber.propertyLockoutCounter, 3, &more, &data))
        try take(data) { data in
            withUnsafeBytes(of: data.data.tpmProperties.tpmProperty) { bytes in
                let properties = bytes.bindMemory(to: TPMS_TAGGED_PROPERTY.self)
                let count = min(Int(data.data.tpmProperties.count), properties.count, 3)
                for property in properties.prefix(count) { values[property.property] = property.value }
            }
        }
        let first = TPMNumber.propertyLockoutCounter
        return (values[first] ?? 0, values[first + 1] ?? 0, values[first + 2] ?? 0)
    }

    /// Makes a key below the storage root key; what comes back is wrapped by it.
    func create(_ use: TPMKeyUse, pin: Secret?) throws -> TPMKeyBlob {
        var template = TPM2B_PUBLIC.key(use, hasPIN: pin != nil)
        var sensitive = TPM2B_SENSITIVE_CREATE()
        sensitive.sensitive.userAuth = try TPMBytes.authorization(pin)
        defer { TPMBytes.wipe(&sensitive) }
        var outside = TPM2B_DATA()
        var registers = TPML_PCR_SELECTION()
        var privatePart: UnsafeMutablePointer<TPM2B_PRIVATE>?
        var publicPart: UnsafeMutablePointer<TPM2B_PUBLIC>?
        try encrypt(TPMNumber.decryptCommand | TPMNumber.encryptResponse)
        try check(
            "making a key",
            Esys_Create(
                context, root, session, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive, &template, &outside, &registers,
                &privatePart, &publicPart, nil, nil, nil))
        let blob = try take(privatePart) { $0 }
        return TPMKeyBlob(privatePart: blob, publicPart: try take(publicPart) { $0 })
    }

    /// Loads a key, calls `body` with it, and flushes it.
    func withKey<Result>(_ blob: TPMKeyBlob, pin: Secret?, _ body: (ESYS_TR) throws -> Result) throws -> Result {
        var privatePart = blob.privatePart
        var publicPart = blob.publicPart
        var key: ESYS_TR = ESYS_TR_NONE
        try encrypt(TPMNumber.decryptCommand | TPMNumber.encryptResponse)
        try check(
            "loading a key",
            Esys_Load(context, root, session, ESYS_TR_NONE, ESYS_TR_NONE, &privatePart, &publicPart, &key))
        defer { Esys_FlushContext(context, key) }
        var authorization = try TPMBytes.authorization(pin)
        defer { TPMBytes.wipe(&authorization) }
        try check("giving the PIN", Esys_TR_SetAuth(context, key, &authorization))
        return try body(key)
    }

    /// ECDSA over a SHA-256 digest: `r ‖ s`.
    func sign(_ digest: [UInt8], key: ESYS_TR) throws -> [UInt8] {
        var buffer = TPM2B_DIGEST()
        buffer.size = try TPMBytes.set(&buffer.buffer, digest)
        var scheme = TPMT_SIG_SCHEME()
        scheme.scheme = TPMNumber.algorithmECDSA
        scheme.details.ecdsa.hashAlg = TPMNumber.algorithmSHA256
        var ticket = TPMT_TK_HASHCHECK()
        ticket.tag = TPMNumber.hashCheck
        ticket.hierarchy = TPMNumber.hierarchyNull
        var signature: UnsafeMutablePointer<TPMT_SIGNATURE>?
        try encrypt(TPMNumber.decryptCommand)
        try check(
            "signing",
            Esys_Sign(context, key, session, ESYS_TR_NONE, ESYS_TR_NONE, &buffer, &scheme, &ticket, &signature))
        return try take(signature) { signature in
            guard signature.sigAlg == TPMNumber.algorithmECDSA else { return nil }
            let value = signature.signature.ecdsa
            guard let r = TPMBytes.get(value.signatureR.buffer, value.signatureR.size), r.count <= 32,
                let s = TPMBytes.get(value.signatureS.buffer, value.signatureS.size), s.count <= 32
            else { return nil }
            return TPMBytes.padded(r) + TPMBytes.padded(s)
        }
    }

    /// The x coordinate of the shared point with the peer's uncompressed one (TPM2_ECDH_ZGen).
    func agree(_ peer: [UInt8], key: ESYS_TR) throws -> Secret {
        var point = TPM2B_ECC_POINT()
        point.point.x.size = try TPMBytes.set(&point.point.x.buffer, Array(peer.dropFirst().prefix(32)))
        point.point.y.size = try TPMBytes.set(&point.point.y.buffer, Array(peer.suffix(32)))
        var shared: UnsafeMutablePointer<TPM2B_ECC_POINT>?
        try encrypt(TPMNumber.decryptCommand | TPMNumber.encryptResponse)
        try check(
            "agreeing on a secret",
            Esys_ECDH_ZGen(context, key, session, ESYS_TR_NONE, ESYS_TR_NONE, &point, &shared))
        return try take(shared) { shared in
            guard let x = TPMBytes.get(shared.point.x.buffer, shared.point.x.size), !x.isEmpty, x.count <= 32 else {
                return nil
            }
            return Secret(bytes: TPMBytes.padded(x))
        }
    }

    // MARK: NV counters

    /// Defines a counter at an index of the owner's range, under a tag by which it is known again.
    func defineCounter(_ index: UInt32, tag: [UInt8]) throws {
        var description = TPM2B_NV_PUBLIC()
        description.nvPublic.nvIndex = index
        description.nvPublic.nameAlg = TPMNumber.algorithmSHA256
        description.nvPublic.attributes =
            TPMNumber.nvCounter | TPMNumber.nvAuthRead | TPMNumber.nvAuthWrite | TPMNumber.nvNoDA
        description.nvPublic.authPolicy.size = try TPMBytes.set(&description.nvPublic.authPolicy.buffer, tag)
        description.nvPublic.dataSize = 8
        var authorization = TPM2B_AUTH()
        var handle: ESYS_TR = ESYS_TR_NONE
        try encrypt(TPMNumber.decryptCommand)
        do {
            try check(
                "making a counter",
                Esys_NV_DefineSpace(
                    context, ESYS_TR_RH_OWNER, session, ESYS_TR_NONE, ESYS_TR_NONE, &authorization, &description,
                    &handle))
        } catch let failure as TPMFailure where failure.error.code == .wrongSecret {
            throw Self.ownerPassword
        }
    }

    /// The counter at an index, with its tag; `nil` when nothing is defined there.
    func counter(_ index: UInt32) throws -> (handle: ESYS_TR, tag: [UInt8], attributes: UInt32)? {
        var handle: ESYS_TR = ESYS_TR_NONE
        do {
            try check(
                "finding a counter",
                Esys_TR_FromTPMPublic(context, index, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &handle))
        } catch let failure as TPMFailure where failure.response == TPMFailure.Response.handle {
            return nil
        }
        var description: UnsafeMutablePointer<TPM2B_NV_PUBLIC>?
        try check(
            "finding a counter",
            Esys_NV_ReadPublic(context, handle, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &description, nil))
        return try take(description) { description in
            let area = description.nvPublic
            guard let tag = TPMBytes.get(area.authPolicy.buffer, area.authPolicy.size) else { return nil }
            return (handle, tag, area.attributes)
        }
    }

    func increment(_ counter: ESYS_TR) throws {
        try encrypt(0)
        try check(
            "counting", Esys_NV_Increment(context, counter, counter, session, ESYS_TR_NONE, ESYS_TR_NONE))
    }

    func read(_ counter: ESYS_TR) throws -> UInt64 {
        var data: UnsafeMutablePointer<TPM2B_MAX_NV_BUFFER>?
        try encrypt(TPMNumber.encryptResponse)
        try check(
            "reading a counter",
            Esys_NV_Read(context, counter, counter, session, ESYS_TR_NONE, ESYS_TR_NONE, 8, 0, &data))
        return try take(data) { data in
            guard let bytes = TPMBytes.get(data.buffer, data.size), bytes.count == 8 else { return nil }
            return bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    func undefine(_ counter: ESYS_TR) throws {
        try encrypt(0)
        do {
            try check(
                "removing a counter",
                Esys_NV_UndefineSpace(context, ESYS_TR_RH_OWNER, counter, session, ESYS_TR_NONE, ESYS_TR_NONE))
        } catch let failure as TPMFailure where failure.error.code == .wrongSecret {
            throw Self.ownerPassword
        }
    }

    private static let ownerPassword = KeyProviderError(
        .unsupported,
        "The TPM's owner hierarchy has a password, so counters can neither be made nor removed here. Let the owner take it "
            + "off meanwhile: tpm2_changeauth -c owner -p <old>.")

    /// Sets what the session encrypts in the next command.
    private func encrypt(_ flags: UInt8) throws {
        try check(
            "using the session",
            Esys_TRSess_SetAttributes(context, session, TPMNumber.continueSession | flags, 0xFF))
    }

    private func check(_ action: String, _ result: TSS2_RC) throws {
        guard result == 0 else { throw TPMFailure(code: result, action: action) }
    }

    /// What a function has allocated, copied and freed; `nil` from `body` is an answer without sense.
    private func take<Value, Result>(
        _ pointer: UnsafeMutablePointer<Value>?, _ body: (Value) throws -> Result?
    ) throws -> Result {
        guard let pointer else { throw TPMFailure.nonsense("nothing where something was due") }
        defer { Esys_Free(pointer) }
        guard let result = try body(pointer.pointee) else { throw TPMFailure.nonsense("a wrong length or kind") }
        return result
    }
}
#endif
