#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit

/// An attribute of an object, with its value as bytes.
struct PKCS11Attribute {
    let type: CK_ATTRIBUTE_TYPE
    let bytes: [UInt8]

    init(_ type: CK_ATTRIBUTE_TYPE, _ bytes: [UInt8]) {
        self.type = type
        self.bytes = bytes
    }

    init(_ type: CK_ATTRIBUTE_TYPE, _ flag: Bool) {
        self.init(type, [flag ? 1 : 0])
    }

    init(_ type: CK_ATTRIBUTE_TYPE, number: CK_ULONG) {
        self.init(type, withUnsafeBytes(of: number) { Array($0) })
    }

    init(_ type: CK_ATTRIBUTE_TYPE, _ text: String) {
        self.init(type, Array(text.utf8))
    }
}

extension [PKCS11Attribute] {
    /// Calls `body` with the attributes in C's form, which are valid only during the call.
    func withTemplate<Result>(
        _ body: (UnsafeMutablePointer<CK_ATTRIBUTE>, CK_ULONG) throws -> Result
    ) rethrows -> Result {
        let alignment = MemoryLayout<CK_ULONG>.alignment
        let offsets = reduce(into: [0]) { offsets, attribute in
            let end = (offsets.last ?? 0) + attribute.bytes.count
            offsets.append((end + alignment - 1) / alignment * alignment)
        }
        let size = Swift.max(1, offsets.last ?? 0)
        return try withUnsafeTemporaryAllocation(byteCount: size, alignment: alignment) { storage in
            try withUnsafeTemporaryAllocation(of: CK_ATTRIBUTE.self, capacity: Swift.max(1, count)) { template in
                for ((index, attribute), offset) in zip(self.enumerated(), offsets) {
                    let place = UnsafeMutableRawBufferPointer(rebasing: storage[offset...])
                    place.copyBytes(from: attribute.bytes)
                    template.initializeElement(
                        at: index,
                        to: CK_ATTRIBUTE(
                            type: attribute.type, pValue: place.baseAddress, ulValueLen: CK_ULONG(attribute.bytes.count)
                        ))
                }
                guard let first = template.baseAddress else { throw PKCS11Failure.nonsense("no memory") }
                return try body(first, CK_ULONG(count))
            }
        }
    }
}

extension PKCS11Session {
    private static let attributeLimit = 1 << 12
    private static let objectLimit = 4_096

    /// The handles of the objects that have these attributes.
    func find(_ attributes: [PKCS11Attribute]) throws -> [CK_OBJECT_HANDLE] {
        let action = "looking for keys"
        try attributes.withTemplate { template, count in
            try module.check(action, try module.function(\.C_FindObjectsInit)(handle, template, count))
        }
        var found: [CK_OBJECT_HANDLE] = []
        do {
            while true {
                var batch = [CK_OBJECT_HANDLE](repeating: 0, count: 64)
                var count: CK_ULONG = 0
                try module.check(action, try module.function(\.C_FindObjects)(handle, &batch, 64, &count))
                guard count <= 64 else { throw PKCS11Failure.nonsense("more objects than were asked for") }
                if count == 0 { break }
                found += batch.prefix(Int(count))
                guard found.count <= Self.objectLimit else { throw PKCS11Failure.nonsense("too many objects") }
            }
        } catch {
            // The reason for ending counts, not whether ending works.
            _ = try? module.function(\.C_FindObjectsFinal)(handle)
            throw error
        }
        try module.check(action, try module.function(\.C_FindObjectsFinal)(handle))
        return found
    }

    /// The value of an attribute, or `nil` when the object has none.
    func value(_ type: CK_ATTRIBUTE_TYPE, of object: CK_OBJECT_HANDLE) throws -> [UInt8]? {
        let getAttributeValue = try module.function(\.C_GetAttributeValue)
        var attribute = CK_ATTRIBUTE(type: type, pValue: nil, ulValueLen: 0)
        let result = getAttributeValue(handle, object, &attribute, 1)
        if result == CKR_ATTRIBUTE_TYPE_INVALID || result == CKR_ATTRIBUTE_SENSITIVE { return nil }
        try module.check("reading a key's attributes", result)
        if attribute.ulValueLen == CK_ULONG.max { return nil }
        guard attribute.ulValueLen <= CK_ULONG(Self.attributeLimit) else {
            throw PKCS11Failure.nonsense("an attribute of \(attribute.ulValueLen) bytes")
        }
        let size = Int(attribute.ulValueLen)
        return try withUnsafeTemporaryAllocation(byteCount: Swift.max(1, size), alignment: 16) { buffer in
            defer { buffer.initializeMemory(as: UInt8.self, repeating: 0) }
            attribute.pValue = buffer.baseAddress
            let result = getAttributeValue(handle, object, &attribute, 1)
            guard result != CKR_BUFFER_TOO_SMALL else {
                throw PKCS11Failure.nonsense("an attribute longer than its length")
            }
            try module.check("reading a key's attributes", result)
            guard attribute.ulValueLen <= CK_ULONG(size) else {
                throw PKCS11Failure.nonsense("an attribute longer than its length")
            }
            return Array(buffer.prefix(Int(attribute.ulValueLen)))
        }
    }

    /// Whether a Boolean attribute is there and true.
    func flag(_ type: CK_ATTRIBUTE_TYPE, of object: CK_OBJECT_HANDLE) throws -> Bool? {
        guard let bytes = try value(type, of: object) else { return nil }
        guard bytes.count == 1 else { throw PKCS11Failure.nonsense("a Boolean of \(bytes.count) bytes") }
        return bytes[0] != 0
    }

    func destroy(_ object: CK_OBJECT_HANDLE) throws {
        try module.check("removing a key", try module.function(\.C_DestroyObject)(handle, object))
    }
}
#endif
