export function useState<T>(initial: T | (() => T)): [T, (next: T | ((old: T) => T)) => void];
export function useEffect(effect: () => any, deps?: any[]): void;
export function useLayoutEffect(effect: () => any, deps?: any[]): void;
export function useMemo<T>(make: () => T, deps?: any[]): T;
export function useCallback<T extends (...args: any[]) => any>(act: T, deps?: any[]): T;
export function useRef<T>(initial: T): { current: T };
